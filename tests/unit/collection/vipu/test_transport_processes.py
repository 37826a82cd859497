# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the processes of the command line transport: arguments, environment and timeout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Connection
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.command_line import CliTransport

from tests.unit.collection.vipu.cli_steps import OLDER_PARTITIONS, made, rejection, step
from tests.unit.collection.vipu.recorded import Recorded
from tests.waiting import until


def test_environment_of_commands(recorded: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VIPU_CLI_OUTPUT", "json")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.chdir(tmp_path)
    recorded.prints("list users", "")
    connection = Connection("10.3.1.101", 8091, "alice", "6zX_K4uCzN0", ca_path="ca.crt", timeout=10)
    transport = CliTransport(connection, recorded.vipu_admin, recorded.vipu)
    transport.read("user")
    assert recorded.lines == [
        "vipu-admin --api-host=10.3.1.101 --api-port=8091 --api-user-id=alice list users",
    ]
    seen, folder = recorded.environment, recorded.working_folder
    assert {name: value for name, value in seen.items() if name.startswith("VIPU_")} == {
        "VIPU_CLI_API_ACCESS_KEY": "6zX_K4uCzN0",
        "VIPU_CLI_CA_PATH": str(tmp_path / "ca.crt"),
    }
    assert "HTTPS_PROXY" not in seen and "LANG" not in seen
    assert Path(seen["HOME"]) == folder != tmp_path
    (folder / "alice.vipu-cli.hcl").write_text("what the command leaves")
    assert folder.stat().st_mode & 0o777 == 0o700
    transport.close()
    assert not folder.exists()


def test_the_consent_to_plaintext_reaches_commands(recorded: Recorded) -> None:
    recorded.prints("list users", "")
    connection = Connection("10.3.1.101", access_key="k3y", insecure_network=True, timeout=10)
    transport = CliTransport(connection, recorded.vipu_admin, recorded.vipu)
    transport.read("user")
    transport.close()
    assert recorded.environment["VIPU_CLI_INSECURE_NETWORK"] == "true"


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        ({"host": "--config=/tmp/evil.hcl"}, "api_host: '--config=/tmp/evil.hcl' is not a host name"),
        ({"host": ""}, "api_host: '' is not a host name"),
        ({"host": "a b"}, "api_host: 'a b' is not a host name"),
        ({"host": "a\0b"}, "is not a host name"),
        ({"port": 0}, "the port must be 1 to 65535, not 0"),
        ({"user_id": "--api-access-key=x"}, "'--api-access-key=x' is not a valid user id"),
        ({"user_id": "alice bob"}, "'alice bob' is not a valid user id"),
        ({"access_key": "a\0b"}, "the access key or a path contains a NUL character"),
        ({"host": "10.3.1.101", "access_key": "k3y"}, "Cannot send the access key to 10.3.1.101:8090"),
    ],
)
def test_no_option_value_becomes_a_flag(recorded: Recorded, connection: dict[str, Any], message: str) -> None:
    recorded.prints("list users", "")
    for transport in made(recorded, **connection):
        assert message in rejection(lambda transport=transport: transport.read("user"))
    assert recorded.lines == []


def test_command_is_killed_with_its_children_after_the_timeout(recorded: Recorded, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    # The child keeps the pipes of its parent open, as a tool behind a wrapper does.
    recorded.does("list agents", f"sleep 600 & echo $! > {pid}; wait")
    for transport in made(recorded, host="10.3.1.101", timeout=1.0):
        assert rejection(lambda transport=transport: transport.read("agent")) == (
            "Cannot run command 'vipu-admin list agents': it did not end within 1 seconds. Check that the controller "
            "at 10.3.1.101:8090 responds, or increase timeout."
        )
    until(lambda: _has_ended(int(pid.read_text())), 15, "the child has ended")


def _has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return True
    return state == "Z"


def test_timeout_of_a_creation_is_left_to_the_wait(recorded: Recorded) -> None:
    recorded.does("create partition p64 --size 64 --allocation a", "exec sleep 600")
    recorded.prints("list partitions", OLDER_PARTITIONS.replace("ACTIVE", "PENDING"))
    for transport in made(recorded, timeout=1.0):
        assert transport.write([step("partition", "p64", size=64, allocation="a")], force=False) == []


def test_commands_that_cannot_run(recorded: Recorded, tmp_path: Path) -> None:
    script = tmp_path / "no-script"
    script.write_text("")
    for path, message in (
        (
            "/nonexistent/vipu-admin",
            "Cannot run command '/nonexistent/vipu-admin': it was not found on the host of the task",
        ),
        (
            "vipu-nonesuch",
            "Cannot run command 'vipu-nonesuch': it was not found on the host of the task. Install it there",
        ),
        (str(script), ": permission denied. Check the file and its mode."),
        (str(tmp_path), ": permission denied. Check the file and its mode."),
    ):
        transport = CliTransport(Connection(), path, recorded.vipu)
        assert message in rejection(lambda transport=transport: transport.read("agent"))
        transport.close()


def test_relative_path_of_a_command_is_resolved(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(recorded.folder.parent)
    recorded.prints("list users", " User\n alice\n")
    transport = CliTransport(Connection(), "bin/vipu-admin", recorded.vipu)
    assert [user["id"] for user in transport.read("user")] == ["alice"]
    transport.close()


def test_reads_run_in_parallel(recorded: Recorded, transport: CliTransport, tmp_path: Path) -> None:
    # Each command waits for the start of the other, so sequential commands would fail.
    for noun, other in (("agents", "clusters"), ("clusters", "agents")):
        recorded.does(
            f"list {noun}",
            f"touch {tmp_path}/{noun}; n=0\n"
            f"while [ ! -e {tmp_path}/{other} ] && [ $n -lt 500 ]; do sleep 0.01; n=$((n+1)); done\n"
            f"[ -e {tmp_path}/{other} ] && echo 'No {noun} found.'",
        )
    assert transport.read_all(["agent", "cluster"]) == {"agent": [], "cluster": []}
