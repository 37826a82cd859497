# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of playbooks/users.yml: users of the POD, each with its own key file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.integration.vipu_servers import InProcess, InstantLife, pod


def users_playbook(folder: Path, inventory: dict[str, Any]) -> str:
    """Run the playbook and return its output."""
    file = folder / "hosts.json"
    file.write_text(json.dumps(inventory))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", file, ROOT / "playbooks/users.yml"],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_users_of_the_pod(vipu_server: Callable[..., InProcess], tmp_path: Path) -> None:
    server = vipu_server(life=InstantLife)
    pod(server, machines=2, allocations={"team-a": 2})
    host, port = server.address.rsplit(":", 1)
    variables = {
        "vipu_connection": {"api_host": host, "api_port": int(port)},
        "vipu_pod_users": [{"id": "alice", "role": "user", "allocations": ["team-a"]}],
        "vipu_users_folder": str(tmp_path / "users"),
    }

    def run() -> str:
        return users_playbook(tmp_path, {"controllers": {"hosts": {"server1": variables}}})

    assert "changed=1" in run()
    file = tmp_path / "users" / "alice.vipu-cli.hcl"
    before = file.read_text()
    assert 'api-user-id="alice"' in before
    assert file.stat().st_mode & 0o777 == 0o600
    assert "changed=0" in run()
    assert file.read_text() == before
