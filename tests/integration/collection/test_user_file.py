# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the file with the access key of a new user, as the only settings of a client."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.integration.collection.playbook import play
from tests.integration.collection.tasks import task
from tests.integration.vipu_servers import Process, run

BIN = Path(sys.executable).parent
CERTS = {"ca_path": "ca.crt", "client_cert": "client.crt", "client_key": "client.key"}


def vipu(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run ``vipu`` with no setting of ours."""
    return subprocess.run(
        [BIN / "vipu", *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=30,
    )


@pytest.mark.parametrize(
    "more",
    [
        {"openipu_fast_path": True},
        {"openipu_fast_path": False},
        {"transport": "cli", "vipu_path": str(BIN / "vipu"), "vipu_admin_path": str(BIN / "vipu-admin")},
    ],
    ids=["action", "module", "cli"],
)
def test_the_key_file_is_sufficient_for_a_client(
    vipu_process: Callable[..., Process], tmp_path: Path, more: dict[str, Any]
) -> None:
    certs = tmp_path / "vipu-certs"
    made = run("--tls-init", str(certs), "--init", "--secure", "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    server = vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())
    host, port = server.address.rsplit(":", 1)
    first = dict(re.findall(r'^([a-z-]+)="?([^"\n]*)', (tmp_path / "admin.vipu-cli.hcl").read_text(), re.MULTILINE))
    controller = {
        "api_host": host,
        "api_port": int(port),
        "api_user_id": first["api-user-id"],
        "api_access_key": first["api-access-key"],
        **{name: str(certs / "client" / file) for name, file in CERTS.items()},
        **{name: value for name, value in more.items() if name != "openipu_fast_path"},
    }
    file = tmp_path / "keys" / "alice.hcl"
    variables = {name: value for name, value in more.items() if name == "openipu_fast_path"}
    played = play(tmp_path, [task("vipu_user", id="alice", config_dest=str(file))], controller=controller, **variables)
    assert (played.failed, played.changed) == (0, 1), played.output

    assert sorted(path.name for path in file.parent.iterdir()) == ["alice.crt", "alice.hcl", "alice.key"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {0o600}
    listed = vipu(tmp_path, "--config", file, "list", "partitions", "-o", "json")
    assert listed.returncode == 0, listed.stderr
    assert json.loads(listed.stdout) == []
    # The caller is alice, who is not an administrator.
    rejected = subprocess.run([BIN / "vipu-admin", "--config", file, "list", "users"], capture_output=True, timeout=30)
    assert rejected.returncode == 1
