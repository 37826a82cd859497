# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of the real Keystone in a keyring: tasks share one login, and a rejected token is replaced."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.openstack import cached_tokens
from tools.openstack.site import ADMIN_CLOUD

pytestmark = pytest.mark.timeout(600)


class Keyring:
    """Keyring in a file, for the playbooks of one test."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / cached_tokens.FILE
        self._environment = cached_tokens.environment(folder)
        self._playbook = folder / "read.yml"
        local = {"hosts": "localhost", "connection": "local", "gather_facts": False}
        task = {"openipu.pod.openstack_pod_network_info": {"pod": "none", "cloud": ADMIN_CLOUD}}
        self._playbook.write_text(yaml.safe_dump([{**local, "tasks": [task, task]}]))

    def play(self, fast: bool) -> str:
        """Run two tasks that read networks, and return the complete output."""
        variables = {"ansible_python_interpreter": sys.executable, "openipu_fast_path": fast}
        program = Path(sys.executable).with_name("ansible-playbook")
        done = subprocess.run(
            [program, "-vvv", "-i", "localhost,", self._playbook, "-e", json.dumps(variables)],
            env={**os.environ, **self._environment, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "ok=2" in done.stdout, done.stdout
        return done.stdout + done.stderr

    def token(self) -> str:
        """Return the only token in the file."""
        return str(self._login()["auth_token"])

    def replace_token(self, token: str) -> None:
        """Write another token into the file."""
        (section, name, *_value) = self.file.read_text().splitlines()
        value = base64.b64encode(json.dumps({**self._login(), "auth_token": token}).encode()).decode()
        self.file.write_text(f"{section}\n{name} {value}\n")

    def _login(self) -> dict[str, Any]:
        (value,) = "".join(self.file.read_text().split()).split("=", 1)[1:]
        return dict(json.loads(base64.b64decode(value)))


@pytest.fixture
def keyring(cloud: Path, tmp_path: Path) -> Keyring:
    return Keyring(tmp_path)


@pytest.mark.parametrize("fast", [True, False])
def test_playbooks_share_one_login(keyring: Keyring, fast: bool) -> None:
    """A login stores another token, so the same one shows that there was none. Other clients log in meanwhile."""
    output = keyring.play(fast)
    token = keyring.token()
    output += keyring.play(fast)
    assert keyring.token() == token
    assert keyring.file.stat().st_mode & 0o777 == 0o600
    assert token not in output


def test_a_rejected_token_is_replaced(keyring: Keyring) -> None:
    """Neutron accepts a revoked token for some minutes, so this one is unknown to Keystone."""
    keyring.play(fast=True)
    keyring.replace_token("unknown")
    keyring.play(fast=True)
    token = keyring.token()
    assert token != "unknown"
    keyring.play(fast=True)
    assert keyring.token() == token
