# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors are one line and exit status 1."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.vipu.cli import config_file
from tests.integration.cli.cli_support import BIN, Cli
from tests.integration.cli.client_support import aborting
from tests.waiting import until


@pytest.fixture(scope="module")
def pod(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """Register two IPU-Machines in one allocation; return the runner."""
    cli = Cli(tmp_path_factory.mktemp("admin"), lab.address)
    for agent in lab.rack.agents[:2]:
        cli.out(f"vipu-admin create agent {agent.id} --host {agent.host} --port {agent.port}")
    cli.out("vipu-admin create cluster cl0 --agents ag01,ag02")
    cli.out("vipu-admin create allocation a --cluster cl0 --size 2")
    until(lambda: {agent["state"] for agent in cli.json("vipu-admin list agents")} == {"Up"})
    return cli


@pytest.fixture
def silent() -> Iterator[int]:
    """Yield a port that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("line", ["vipu list partitions", "vipu --server-version", "vipu-admin remove agent x"])
def test_no_controller(tmp_path: Path, line: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    message = Cli(tmp_path, f"127.0.0.1:{port}").failed(line)
    assert f": failed: the V-IPU controller at 127.0.0.1:{port} does not respond (connection refused)" in message
    assert "Check --api-host and --api-port, and that vipu-server runs there." in message


def test_something_else_on_the_port(tmp_path: Path, lab: Any) -> None:
    agent = lab.rack.agents[0]  # a gRPC server with another API
    message = Cli(tmp_path, f"{agent.host}:{agent.port}").failed("vipu list partitions")
    assert message.startswith(
        f"list (partitions): failed: the server at {agent.host}:{agent.port} is not a V-IPU controller"
    )


def test_a_server_that_never_responds(tmp_path: Path, silent: int) -> None:
    # The timeout of completions is shorter than that of commands. The test checks that it exists.
    cli = Cli(tmp_path, f"127.0.0.1:{silent}")
    words = {"COMP_WORDS": "vipu get partition ", "COMP_CWORD": "3", "_VIPU_COMPLETE": "bash_complete"}
    assert cli.out("vipu", **words).strip() == ""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("vipu get partition none", "partition 'none' does not exist."),
        ("vipu get partition none --ipuof-configs", "partition 'none' does not exist."),
        ("vipu remove partition none", "partition 'none' does not exist."),
        ("vipu reset partition none", "partition 'none' does not exist."),
        ("vipu get allocation none", "allocation 'none' does not exist."),
        ("vipu-admin get agent none", "agent 'none' does not exist."),
        ("vipu-admin get cluster none", "cluster 'none' does not exist."),
        ("vipu-admin remove user none", "user 'none' does not exist."),
        ("vipu create partition p --size 4 --allocation none", "allocation 'none' does not exist."),
        ("vipu create partition p --size 3 --allocation a", "power of two"),
        ("vipu create partition p --size 4 --allocation a --reconfigurable --sync-type pod-native", "c2-compatible"),
        ("vipu-admin create agent ag01 --host 127.81.0.99", "already"),
        ("vipu-admin create agent new --host http://x", "neither an IP address nor a DNS name"),
        ("vipu-admin create cluster c --agents ag09", "'ag09' does not exist"),
    ],
)
def test_errors_contain_the_reason(pod: Cli, line: str, reason: str) -> None:
    _, verb, noun, id, *_ = line.split()
    message = pod.failed(line)
    assert message.startswith(f"{verb} {noun} ({id}): failed: ") and reason.removesuffix(".") in message
    assert f"Cannot {verb} {noun}" not in message  # the result line contains it already


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("vipu-admin get agent AG1", "agent 'AG1' does not exist. Did you mean 'ag01'?"),
        ("vipu-admin remove agent none", "agent 'none' does not exist. Choose from ag01, ag02."),
        ("vipu get allocation none", "allocation 'none' does not exist. Choose from a."),
        ("vipu create partition p --size 4 --allocation none", "allocation 'none' does not exist. Choose from a."),
        ("vipu-admin create cluster c --agents none,ag01", "'none' does not exist. Choose from ag01, ag02."),
        ("vipu get partition none", "partition 'none' does not exist."),  # there are none
    ],
)
def test_an_unknown_id_lists_the_known_ones(pod: Cli, line: str, end: str) -> None:
    assert pod.failed_on_terminal(line).endswith(end)
    assert pod.failed(line).endswith(" does not exist.")  # programs get the line of the controller


def test_an_unknown_partition_suggests_a_similar_one(pod: Cli) -> None:
    pod.out("vipu create partition vision --size 4 --allocation a --no-wait")
    for command in ("get partition vison", "remove partition vison", "reset partition vison"):
        line = pod.failed_on_terminal(f"vipu {command}")
        assert line.endswith("partition 'vison' does not exist. Did you mean 'vision'?")
    pod.out("vipu remove partition vision")


def test_without_a_list_of_ids_the_message_is_that_of_the_controller(serve: Callable[..., int], tmp_path: Path) -> None:
    port = serve(aborting(grpc.StatusCode.NOT_FOUND, "partition 'p' does not exist."))
    assert Cli(tmp_path, f"127.0.0.1:{port}").failed_on_terminal("vipu remove partition p") == (
        "remove partition (p): failed: partition 'p' does not exist."
    )


def test_index_is_rejected_before_any_change(pod: Cli) -> None:
    message = pod.failed("vipu create partition p1 --size 4 --allocation a --index 0")
    assert message.startswith("create partition (p1): failed: this controller does not support --index. Omit it")
    assert pod.json("vipu list partitions") == []


def test_the_error_names_the_free_ipus(pod: Cli) -> None:
    pod.out("vipu create partition p1 --size 4 --allocation a")
    message = pod.failed("vipu create partition p2 --size 8 --allocation a")
    assert message == (
        "create partition (p2): failed: allocation 'a' has 4 free IPUs in blocks of at most 4. "
        "Request at most 4, or remove a partition."
    )
    pod.out("vipu remove partition p1")


def test_failures_as_json_are_an_object_on_standard_output(pod: Cli) -> None:
    done = pod("vipu get partition none -o json", status=1)
    assert json.loads(done.stdout) == {
        "command": "get partition",
        "id": "none",
        "result": "failed",
        "reason": "partition 'none' does not exist.",
        "code": "NOT_FOUND",
        "error_code": "OPU605",
    }
    assert done.stderr == "get partition (none): failed: partition 'none' does not exist.\n"


def test_a_partition_with_a_stopped_machine(pod: Cli, lab: Any) -> None:
    pod.out("vipu create partition p1 --size 8 --allocation a --disable-auto-reset")
    lab.rack.stop_machines("ag02")
    try:
        until(lambda: pod.json("vipu get partition p1")["state"] == "ERROR")
        until(lambda: pod.json("vipu-admin get agent ag02")["state"] == "Down")
        assert "ag02" in pod.out("vipu get partition p1")
        assert " Reason" in pod.out("vipu-admin get agent ag02")
        message = pod.failed("vipu reset partition p1 --timeout 0.2")
        assert message.startswith(
            "reset partition (p1): failed: The partition is still PENDING (RESETTING) after 0.2 s"
        )
        message = pod.failed("vipu reset partition p1 --timeout 30")
        assert "The partition exists, but is ERROR: " in message and "ag02" in message
        assert "ag02" in pod.failed("vipu remove partition p1")
        assert pod.files() == ["p1_ipuof.conf"]
        assert pod.out("vipu remove partition p1 --force") == "remove partition (p1): success.\n"
        assert pod.files() == []
    finally:
        lab.rack.start_machines("ag02")
        until(lambda: pod.json("vipu-admin get agent ag02")["state"] == "Up", 20)


def test_files_that_cannot_be_written(pod: Cli, lab: Any, tmp_path: Path) -> None:
    cli = Cli(tmp_path, lab.address)
    cli.conf.write_text("a file is in the way")
    message = cli.failed("vipu create partition p1 --size 1 --allocation a")
    assert "is ACTIVE, but its IPUoF configuration cannot be written" in message
    file = tmp_path / "alice.vipu-cli.hcl"
    file.mkdir()
    assert "exists" in cli.failed("vipu-admin create user alice")
    assert pod.json("vipu-admin list users") == []
    file.rmdir()
    done = subprocess.run(
        ["prlimit", "--fsize=64", str(BIN / "vipu-admin"), "create", "user", "alice"],  # bytes; the file is longer
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**cli.environment, "PYTHONDONTWRITEBYTECODE": "1"},  # or the limit would cut its files
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    message = done.stderr
    assert "The user exists with the access key '" in message and "it cannot be read again" in message
    pod.out("vipu remove partition p1")
    pod.out("vipu-admin remove user alice")


def test_configuration_files_that_cannot_be_used(pod: Cli) -> None:
    assert "Cannot read the configuration file 'none.hcl': it does not exist" in pod.failed(
        "vipu --config none.hcl list partitions"
    )
    (pod.home / "bad.hcl").write_text("api-host = \n")
    assert "'bad.hcl': it is not HCL at line 1" in pod.failed("vipu list partitions --config bad.hcl")
    assert "Cannot read the configuration file" in pod.failed("vipu list partitions", VIPU_CLI_CONFIG="none.hcl")


def test_tls_flags_against_a_controller_without_tls(pod: Cli) -> None:
    assert "Cannot read file 'none.crt'" in pod.failed("vipu --ca-path none.crt list partitions")
    assert "must be set together" in pod.failed("vipu --client-cert x.crt list partitions")


def test_the_system_file_has_its_documented_path() -> None:
    assert str(config_file.SYSTEM_FILE) == "/etc/vipu/vipu-cli.hcl"
