# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of the real Keystone in a keyring: tasks share one login, and a revoked token is replaced."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from openstack.connection import Connection

from tests import ROOT
from tests.openstack import cached_tokens
from tests.openstack.neutron_pod import AccessLog
from tools.openstack.site import ADMIN_CLOUD

pytestmark = pytest.mark.timeout(600)

LOGIN = "POST /v3/auth/tokens "


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
        (value,) = "".join(self.file.read_text().split()).split("=", 1)[1:]
        return str(json.loads(base64.b64decode(value))["auth_token"])


@pytest.fixture
def keyring(cloud: Path, tmp_path: Path) -> Keyring:
    return Keyring(tmp_path)


@pytest.fixture
def logins(cloud: Path) -> AccessLog:
    return AccessLog(cloud / "log" / "keystone-access.log")


@pytest.mark.parametrize("fast", [True, False])
def test_playbooks_share_one_login(keyring: Keyring, logins: AccessLog, fast: bool) -> None:
    with logins.requests() as first:
        output = keyring.play(fast)
    assert [request for request in first if request.startswith(LOGIN)] == [f"{LOGIN}HTTP/1.1"]
    with logins.requests() as second:
        output += keyring.play(fast)
    assert [request for request in second if request.startswith("POST ")] == []
    assert keyring.file.stat().st_mode & 0o777 == 0o600
    assert keyring.token() not in output


def test_a_revoked_token_is_replaced(admin: Connection, keyring: Keyring, logins: AccessLog) -> None:
    keyring.play(fast=True)
    revoked = keyring.token()
    answer = admin.identity.delete("/auth/tokens", headers={"X-Subject-Token": revoked})
    assert answer.status_code == 204
    with logins.requests() as found:
        keyring.play(fast=True)
    assert len([request for request in found if request.startswith(LOGIN)]) == 1
    assert keyring.token() != revoked
