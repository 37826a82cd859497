# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment of commands during an upgrade of the controller: without secrets of ``vipu_server_environment``.

Ansible passes environments on command lines, which all users of the host can read, and shows them with ``-vvv``.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT
from tests.unit.collection.pod.inventories import run

ROLE = ROOT / "roles/vipu_server"
RUNNING = {
    "VIPU_SERVER_HOST": "10.0.0.1",
    "VIPU_SERVER_PORT": "8091",
    "VIPU_SERVER_DATABASE": "/srv/vipu/vipu-server.db",
    "VIPU_SERVER_AGENT_TLS_KEY": "/srv/vipu/agent-tls/controller.key",
    "VIPU_SERVER_ADMIN_PORT": "8092",
    "VIPU_SERVER_DISCOVERY_PORT": "8093",
    "HTTPS_PROXY": "http://user:s3cret@proxy",
}
OF_COMMANDS = ("VIPU_SERVER_HOST", "VIPU_SERVER_PORT", "VIPU_SERVER_DATABASE", "VIPU_SERVER_AGENT_TLS_KEY")


def test_commands_get_no_secrets_of_the_running_controller(tmp_path: Path) -> None:
    upgrade, *_ = yaml.safe_load((ROLE / "tasks/upgrade.yml").read_text())
    content = "# Settings\n" + "".join(f'{name}="{value}"\n' for name, value in RUNNING.items())
    name = "vipu_server_command_environment"
    play: dict[str, Any] = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars_files": [str(ROLE / "defaults/main.yml"), str(ROLE / "vars/main.yml")],
        "tasks": [
            {
                "vars": {
                    **upgrade["vars"],
                    "vipu_server_running_configuration": {"content": base64.b64encode(content.encode()).decode()},
                    "ansible_python_interpreter": sys.executable,
                },
                "ansible.builtin.copy": {
                    "content": f"{{{{ {name} | to_json }}}}",
                    "dest": f"{tmp_path}/environment.json",
                    "mode": "0600",
                },
            }
        ],
    }
    file = tmp_path / "play.json"
    file.write_text(json.dumps([play]))
    done = run("ansible-playbook", "-i", "localhost,", file)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "environment.json").read_text())
    assert found == {each: RUNNING[each] for each in OF_COMMANDS}
