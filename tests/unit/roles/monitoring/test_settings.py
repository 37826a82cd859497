# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the role `monitoring`: watched units, validation, targets and secret files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT

ROLE = ROOT / "roles" / "monitoring"
FAMILIES = ("Debian", "RedHat")


def run_tasks(folder: Path, tasks: list[dict[str, Any]], **variables: Any) -> str:
    """Run tasks with the variables of the role, overridden by ``variables``, and return the output of Ansible."""
    family = variables.pop("family", "Debian")
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars_files": [str(ROLE / name) for name in ("defaults/main.yml", f"vars/{family}.yml", "vars/main.yml")],
        "tasks": tasks,
    }
    book = folder / "play.yml"
    book.write_text(yaml.safe_dump([play]))
    settings = folder / "settings.yml"
    settings.write_text(yaml.safe_dump({"ansible_python_interpreter": sys.executable, **variables}))
    result = subprocess.run(
        [
            Path(sys.executable).with_name("ansible-playbook"),
            "-i",
            "localhost,",
            "-c",
            "local",
            "-e",
            f"@{settings}",
            book,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return re.sub(r"\s+", " ", result.stdout + result.stderr)


@pytest.mark.parametrize("family", FAMILIES)
def test_units_of_the_collection_and_of_monitoring_are_watched(tmp_path: Path, family: str) -> None:
    output = run_tasks(
        tmp_path, [{"ansible.builtin.debug": {"msg": "<{{ monitoring_watched | join('|') }}>"}}], family=family
    )
    match = re.search(r"<(.+?)>", output)
    assert match, output
    units = yaml.safe_load((ROLE / f"vars/{family}.yml").read_text())["monitoring_units"].values()
    own_units = {file.name.removesuffix(".j2") for file in (ROOT / "roles").rglob("*.service.j2")}
    own_units = own_units - {"maintenance.service"} | {
        "vipu-backup.service",
        "vipu-renew.service",
    }  # its units
    assert "openipu-firewall.service" in own_units
    assert not [unit for unit in (*units, *own_units) if not re.fullmatch(f"({match[1]})[.]service", unit)]


@pytest.mark.parametrize(
    ("settings", "rejected"),
    [
        ({}, True),
        ({"monitoring_address": "127.0.0.1"}, False),
        ({"monitoring_grafana_password_file": "/etc/grafana.password"}, False),
        ({"monitoring_parts": ["prometheus"]}, False),
    ],
)
def test_grafana_rejects_the_default_password_on_a_network_address(
    tmp_path: Path, settings: dict[str, Any], rejected: bool
) -> None:
    reachable = {
        "monitoring_grafana_install": True,
        "monitoring_parts": ["grafana"],
        "monitoring_targets": {},
        "monitoring_address": "10.1.3.101",
    }
    output = run_tasks(
        tmp_path, [{"ansible.builtin.include_tasks": str(ROLE / "tasks/validate.yml")}], **{**reachable, **settings}
    )
    message = "Cannot install Grafana on 10.1.3.101: its administrator would have the default password. Set"
    assert (message in output) is rejected, output
    assert ("failed=1" in output) is rejected, output


def test_the_controller_target_is_its_metrics_endpoint(tmp_path: Path) -> None:
    target = "{{ monitoring_pod_targets['vipu-controller'] | map(attribute='address') | first }}"
    output = run_tasks(
        tmp_path,
        [
            {"ansible.builtin.include_vars": str(ROOT / "roles/vipu_server/defaults/main.yml")},
            {"ansible.builtin.add_host": {"name": "controller1", "groups": "controllers"}},
            {
                "ansible.builtin.debug": {
                    "msg": f"<{{{{ vipu_server_metrics_host }}}}:{{{{ vipu_server_metrics_port }}}}={target}>"
                }
            },
        ],
        vipu_api_host="10.3.1.101",
    )
    assert "<10.3.1.101:2112=10.3.1.101:2112>" in output


def test_files_with_credentials_are_secret() -> None:
    services = yaml.safe_load((ROLE / "vars/main.yml").read_text())["monitoring_services"]
    public = {
        file["template"] for service in services.values() for file in service.get("files", ()) if not file.get("secret")
    }
    assert public == {"rules/recording.yml.j2", "rules/alerts.yml.j2"}
