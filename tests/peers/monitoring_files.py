# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of the role `monitoring` for a POD, in a folder of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT

ROLE = ROOT / "roles" / "monitoring"
FILES = ("rules/recording.yml", "rules/alerts.yml", "prometheus.yml", "alertmanager.yml", "snmp.yml", "ipmi_remote.yml")


def write_files(
    folder: Path, inventory: Path = ROOT / "inventory/twin/pod.yml", hosts: str = "controllers", **variables: Any
) -> Path:
    """Write the configuration of a host with the variables of the role, overridden by ``variables``.

    Return its folder.
    """
    target = folder / "prometheus"
    for name in ("rules", "targets"):
        (target / name).mkdir(parents=True)
    play = [
        {
            "hosts": hosts,
            "connection": "local",
            "gather_facts": False,
            "vars_files": [str(ROLE / name) for name in ("defaults/main.yml", "vars/Debian.yml", "vars/Debian-12.yml")]
            + [str(ROLE / "vars/main.yml")],
            "tasks": [
                {
                    "ansible.builtin.template": {
                        "src": f"{ROLE}/templates/{{{{ item }}}}.j2",
                        "dest": f"{target}/{{{{ item }}}}",
                        "variable_start_string": "[[",
                        "variable_end_string": "]]",
                        "mode": "0600",
                    },
                    "loop": list(FILES),
                },
                {
                    "ansible.builtin.copy": {
                        "content": "{{ item.content }}",
                        "dest": f"{target}/{{{{ item.path | basename }}}}",
                        "mode": "0600",
                    },
                    "loop": "{{ monitoring_prometheus_files | selectattr('content', 'defined') }}",
                    "no_log": True,
                },
                {
                    "ansible.builtin.copy": {
                        "content": "{{ monitoring_pod_targets | to_nice_json }}",
                        "dest": f"{target}/targets.json",
                        "mode": "0600",
                    },
                },
                {
                    "ansible.builtin.copy": {
                        "content": "{{ monitoring_services.alertmanager.arguments | to_nice_yaml }}",
                        "dest": f"{target}/alertmanager_arguments.yml",
                        "mode": "0600",
                    },
                },
            ],
        }
    ]
    playbook = folder / "write.yml"
    playbook.write_text(yaml.safe_dump(play, sort_keys=False))
    settings = folder / "settings.yml"
    # Addresses of the POD are only written to files: no host is contacted.
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    settings.write_text(yaml.safe_dump({**variables, **local}))
    result = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", inventory, "-e", f"@{settings}", playbook],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "true"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    for file in target.rglob("*.yml"):
        file.write_text(file.read_text().replace("/etc/prometheus/", f"{target}/"))
    return target
