# SPDX-License-Identifier: GPL-3.0-or-later
"""Which commands the transport over the command lines runs, with what, and for how long."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Connection
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport_cli import CliTransport
from cli_steps import OLDER_PARTITIONS, made, refusal, step
from recorded import Recorded


def test_commands_see_what_they_need_and_no_more(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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


@pytest.mark.parametrize(
    ("connection", "sentence"),
    [
        ({"host": "--config=/tmp/evil.hcl"}, "api_host: '--config=/tmp/evil.hcl' is no host"),
        ({"host": ""}, "api_host: '' is no host"),
        ({"host": "a b"}, "api_host: 'a b' is no host"),
        ({"host": "a\0b"}, "is no host"),
        ({"port": 0}, "There is no port 0"),
        ({"user_id": "--api-access-key=x"}, "There can be no user '--api-access-key=x'"),
        ({"user_id": "alice bob"}, "There can be no user 'alice bob'"),
        ({"access_key": "a\0b"}, "a NUL stands in the access key or in a path"),
    ],
)
def test_no_option_becomes_a_flag_of_a_command(recorded: Recorded, connection: dict[str, Any], sentence: str) -> None:
    recorded.prints("list users", "")
    for transport in made(recorded, **connection):
        assert sentence in refusal(lambda transport=transport: transport.read("user"))
    assert recorded.lines == []


def test_a_command_that_does_not_end_is_ended_with_its_children(recorded: Recorded, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    # The child holds the pipes of its parent, as the tool behind a wrapper does.
    recorded.does("list agents", f"sleep 600 & echo $! > {pid}; wait")
    for transport in made(recorded, host="10.3.1.101", timeout=1.0):
        assert refusal(lambda transport=transport: transport.read("agent")) == (
            "The command 'vipu-admin list agents' did not end within 1 seconds: check that the controller at "
            "10.3.1.101:8090 answers, or allow more with timeout."
        )
    assert _gone(int(pid.read_text()))


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_a_partition_whose_creation_takes_longer_than_a_call_may_is_left_to_the_wait(recorded: Recorded) -> None:
    recorded.does("create partition p64 --size 64 --allocation a", "exec sleep 600")
    recorded.prints("list partitions", OLDER_PARTITIONS.replace("ACTIVE", "PENDING"))
    for transport in made(recorded, timeout=1.0):
        assert transport.write([step("partition", "p64", size=64, allocation="a")], force=False) == []


def test_commands_that_cannot_be_run(recorded: Recorded, tmp_path: Path) -> None:
    script = tmp_path / "no-script"
    script.write_text("")
    for path, sentence in (
        ("/nonexistent/vipu-admin", "The command '/nonexistent/vipu-admin' was not found on the host of the task"),
        ("vipu-nonesuch", "The command 'vipu-nonesuch' was not found on the host of the task: install it there, or"),
        (str(script), "cannot be run (permission denied): check the file and its mode."),
        (str(tmp_path), "cannot be run (permission denied): check the file and its mode."),
    ):
        transport = CliTransport(Connection(), path, recorded.vipu)
        assert sentence in refusal(lambda transport=transport: transport.read("agent"))
        transport.close()


def test_a_command_named_from_here_is_found_from_everywhere(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recorded.folder.parent)
    recorded.prints("list users", " User\n alice\n")
    transport = CliTransport(Connection(), "bin/vipu-admin", recorded.vipu)
    assert [user["id"] for user in transport.read("user")] == ["alice"]
    transport.close()


def test_reads_run_at_once(recorded: Recorded, transport: CliTransport, tmp_path: Path) -> None:
    # Each waits for the other to have begun; one after the other they would wait in vain.
    for noun, other in (("agents", "clusters"), ("clusters", "agents")):
        recorded.does(
            f"list {noun}",
            f"touch {tmp_path}/{noun}; n=0\n"
            f"while [ ! -e {tmp_path}/{other} ] && [ $n -lt 500 ]; do sleep 0.01; n=$((n+1)); done\n"
            f"[ -e {tmp_path}/{other} ] && echo 'No {noun} found.'",
        )
    assert transport.read_all(["agent", "cluster"]) == {"agent": [], "cluster": []}
