# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role `monitoring` watches, refuses, and does not show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
ROLE = ROOT / "roles" / "monitoring"
FAMILIES = ("Debian", "RedHat")


def played(folder: Path, tasks: list[dict[str, Any]], **variables: Any) -> str:
    """What Ansible prints of tasks, with the settings of the role but for ``variables``."""
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
    done = subprocess.run(
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
    return re.sub(r"\s+", " ", done.stdout + done.stderr)


@pytest.mark.parametrize("family", FAMILIES)
def test_units_of_ours_and_of_monitoring_are_watched(tmp_path: Path, family: str) -> None:
    said = played(
        tmp_path, [{"ansible.builtin.debug": {"msg": "<{{ monitoring_watched | join('|') }}>"}}], family=family
    )
    match = re.search(r"<(.+?)>", said)
    assert match, said
    units = yaml.safe_load((ROLE / f"vars/{family}.yml").read_text())["monitoring_units"].values()
    ours = {file.name.removesuffix(".j2") for file in (ROOT / "roles").rglob("*.service.j2")}
    ours = ours - {"chore.service"} | {"vipu-backup.service", "vipu-renew.service"}  # which are made of that one
    assert "openipu-firewall.service" in ours
    assert not [unit for unit in (*units, *ours) if not re.fullmatch(f"({match[1]})[.]service", unit)]


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({}, True),
        ({"monitoring_address": "127.0.0.1"}, False),
        ({"monitoring_grafana_password_file": "/etc/grafana.password"}, False),
        ({"monitoring_parts": ["prometheus"]}, False),
    ],
)
def test_grafana_with_a_password_that_everybody_knows_is_refused(
    tmp_path: Path, given: dict[str, Any], refused: bool
) -> None:
    reached = {
        "monitoring_grafana_install": True,
        "monitoring_parts": ["grafana"],
        "monitoring_targets": {},
        "monitoring_address": "10.1.3.101",
    }
    said = played(tmp_path, [{"ansible.builtin.include_tasks": str(ROLE / "tasks/refuse.yml")}], **{**reached, **given})
    sentence = "Grafana would let everybody who reaches 10.1.3.101 in as admin with the password admin: give a file"
    assert (sentence in said) is refused, said
    assert ("failed=1" in said) is refused, said


def test_the_controller_is_asked_where_it_tells(tmp_path: Path) -> None:
    asked = "{{ monitoring_pod_targets['vipu-controller'] | map(attribute='address') | first }}"
    said = played(
        tmp_path,
        [
            {"ansible.builtin.include_vars": str(ROOT / "roles/vipu_server/defaults/main.yml")},
            {"ansible.builtin.add_host": {"name": "controller1", "groups": "controllers"}},
            {
                "ansible.builtin.debug": {
                    "msg": f"<{{{{ vipu_server_metrics_host }}}}:{{{{ vipu_server_metrics_port }}}}={asked}>"
                }
            },
        ],
        vipu_api_host="10.3.1.101",
    )
    assert "<10.3.1.101:2112=10.3.1.101:2112>" in said


def test_files_that_may_hold_credentials_are_not_shown() -> None:
    services = yaml.safe_load((ROLE / "vars/main.yml").read_text())["monitoring_services"]
    shown = {
        file["template"] for service in services.values() for file in service.get("files", ()) if not file.get("secret")
    }
    assert shown == {"rules/recording.yml.j2", "rules/alerts.yml.j2"}
