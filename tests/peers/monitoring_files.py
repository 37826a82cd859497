# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role `monitoring` writes for a POD, in a folder of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "roles" / "monitoring"
FILES = ("rules/recording.yml", "rules/alerts.yml", "prometheus.yml", "alertmanager.yml", "snmp.yml", "ipmi_remote.yml")


def written(folder: Path, inventory: Path = ROOT / "inventory/twin/pod.yml", **variables: Any) -> Path:
    """Have Ansible write what services read, with the settings of the role but for ``variables``; the folder of it."""
    target = folder / "prometheus"
    for name in ("rules", "targets"):
        (target / name).mkdir(parents=True)
    play = [
        {
            "hosts": "controllers",
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
                        "content": "{{ monitoring_pod_targets | to_nice_json }}",
                        "dest": f"{target}/targets.json",
                        "mode": "0600",
                    },
                },
            ],
        }
    ]
    book = folder / "write.yml"
    book.write_text(yaml.safe_dump(play, sort_keys=False))
    settings = folder / "settings.yml"
    # Nobody is logged in to: addresses of a POD are only written down.
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    settings.write_text(yaml.safe_dump({**variables, **here}))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", inventory, "-e", f"@{settings}", book],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "true"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for file in target.rglob("*.yml"):
        file.write_text(file.read_text().replace("/etc/prometheus/", f"{target}/"))
    return target
