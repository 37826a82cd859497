# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of playbooks/users.yml: users of the POD, each with its own key file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests import ROOT
from tests.integration.vipu_servers import InProcess, InstantLife, pod


def test_users_of_the_pod(vipu_server: Callable[..., InProcess], tmp_path: Path) -> None:
    server = vipu_server(life=InstantLife)
    pod(server, machines=2, allocations={"team-a": 2})
    host, port = server.address.rsplit(":", 1)
    inventory = tmp_path / "hosts.json"
    variables = {
        "vipu_connection": {"api_host": host, "api_port": int(port)},
        "vipu_pod_users": [{"id": "alice", "role": "user", "allocations": ["team-a"]}],
        "vipu_users_folder": str(tmp_path / "users"),
    }
    inventory.write_text(json.dumps({"controllers": {"hosts": {"server1": variables}}}))

    def run() -> str:
        done = subprocess.run(
            [Path(sys.executable).parent / "ansible-playbook", "-i", inventory, ROOT / "playbooks/users.yml"],
            env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "changed=1" in run()
    file = tmp_path / "users" / "alice.vipu-cli.hcl"
    before = file.read_text()
    assert 'api-user-id="alice"' in before
    assert file.stat().st_mode & 0o777 == 0o600
    assert "changed=0" in run()
    assert file.read_text() == before
