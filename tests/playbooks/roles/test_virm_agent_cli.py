# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of the transport cli in the role `virm_agent`: the connection is in a private file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from openipu.vipu.cli import config_file, settings
from tests import ROOT

CONNECTION = {
    "transport": "cli",
    "timeout": 5,
    "api_host": "10.3.1.101",
    "api_user_id": "admin",
    "api_access_key": "for-administrators-only",
    "ca_path": "~/ca.crt",
}
# Keeps the configuration, and prints its mode.
VIPU_ADMIN = """#!/bin/sh
cp "$2" {seen} && stat --format 'mode %a' "$2"
"""


def test_the_connection_is_complete_and_not_shown(tmp_path: Path) -> None:
    program, seen, book = tmp_path / "vipu-admin", tmp_path / "seen", tmp_path / "play.yml"
    program.write_text(VIPU_ADMIN.format(seen=seen))
    program.chmod(0o755)
    call = {"ansible.builtin.command": {"argv": "{{ virm_agent_get_agent_command + ['ag01'] }}"}}
    role = {"name": "openipu.pod.virm_agent", "tasks_from": "cli_configuration", "public": True}
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {
            "ansible_python_interpreter": sys.executable,
            "virm_agent_connection": {**CONNECTION, "vipu_admin_path": str(program)},
        },
        "tasks": [{"ansible.builtin.include_role": role}, {**call, "check_mode": False}],
    }
    book.write_text(yaml.safe_dump([play]))
    command = [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", "-c", "local", "--check", "-vvv"]
    run = subprocess.run([*command, book], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "mode 600" in run.stdout, run.stdout + run.stderr
    assert CONNECTION["api_access_key"] not in run.stdout + run.stderr
    settings.check(seen)
    assert config_file.read(seen) == {
        "api-host": "10.3.1.101",
        "api-user-id": "admin",
        "api-access-key": "for-administrators-only",
        "ca-path": str(Path("~/ca.crt").expanduser()),
    }
