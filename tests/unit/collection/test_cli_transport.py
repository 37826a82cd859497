# SPDX-License-Identifier: GPL-3.0-or-later
"""The transport over the command lines, with what several releases of them print."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, Failure, ItemError, Step
from ansible_collections.openipu.pod.plugins.module_utils.vipu import resources
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Connection, VipuError
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport_cli import CliTransport
from recorded import Recorded

OLDER_PARTITIONS = """\
 Partition   | Cluster  | ILDs | GW Routing | ILD Routing | Size | GCDs | State
---------------------------------------------------------------------------------
 p64         | c64_1-16 | 1    | DEFAULT    | RINGSWNC    | 64   | 2    | ACTIVE
---------------------------------------------------------------------------------
"""
NEWER_PARTITIONS = """\
------------------------------------------------------------------
 Allocation | Cluster | Partition | ILDs | Size | GCDs | State
------------------------------------------------------------------
 a1         | cl0     | p1        | 1    | 4    | 1    | PS_PENDING
------------------------------------------------------------------
"""
AGENT_1 = """\
 Agent ID | ag1
 Host     | 10.1.5.1
 Port     | 8081
 Status   | Up
 Exporter | http://10.1.5.1:2112/metrics
-----------------------------------
 IPU | PCI       | Num Tiles
-----------------------------------
 0   | 0000:1a:0 | 1472
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Commands that know nothing yet."""
    return Recorded(tmp_path / "bin")


@pytest.fixture
def transport(recorded: Recorded) -> Iterator[CliTransport]:
    """A transport over those commands."""
    yield from made(recorded)


def made(recorded: Recorded, **connection: Any) -> Iterator[CliTransport]:
    """A transport, closed afterwards."""
    transport = CliTransport(Connection(**connection), recorded.vipu_admin, recorded.vipu)
    yield transport
    transport.close()


def step(kind: str, key: str, action: Action = Action.CREATE, before: Any = None, **wanted: Any) -> Step:
    """A step of a plan."""
    family = next(family for family in resources.FAMILIES if family.kind == kind)
    there = {"id": key} if action is not Action.CREATE else None
    return Step(family, key, action, before or there, None if action is Action.DELETE else {"id": key, **wanted})


def said(errors: list[ItemError]) -> list[tuple[str, str, Failure]]:
    """Which steps have an error, and of what sort."""
    return [(error.kind, error.key, error.failure) for error in errors]


def refusal(call: Callable[[], Any]) -> str:
    """The sentence of a call that fails."""
    with pytest.raises(VipuError) as caught:
        call()
    return caught.value.sentence


# Reading


def test_partitions_of_two_releases(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list partitions", OLDER_PARTITIONS)
    assert transport.read("partition") == [
        # No allocation, which this release does not tell; no GW routing, since DEFAULT says nothing.
        {"id": "p64", "cluster": "c64_1-16", "size": 64, "num_gcds": 2, "routing": "ringswnc", "state": "ACTIVE"}
    ]
    recorded.prints("list partitions", NEWER_PARTITIONS)
    assert transport.read("partition") == [
        {"id": "p1", "allocation": "a1", "cluster": "cl0", "size": 4, "num_gcds": 1, "state": "PENDING"}
    ]


def test_agents_that_are_listed_by_name_only_are_asked_for_one_by_one(
    recorded: Recorded, transport: CliTransport
) -> None:
    recorded.prints("list agents", "Agent ID\n--------\nag1\nag2\nag3\n")
    for n in (1, 2, 3):
        recorded.prints(f"get agent ag{n}", AGENT_1.replace("ag1", f"ag{n}").replace("10.1.5.1", f"10.1.5.{n}"))
    assert transport.read("agent") == [
        {"id": f"ag{n}", "host": f"10.1.5.{n}", "port": 8081, "state": "Up"} for n in (1, 2, 3)
    ]
    assert sorted(recorded.calls) == [
        *(f"vipu-admin get agent ag{n}" for n in (1, 2, 3)),
        "vipu-admin list agents",
    ]


def test_agents_that_are_listed_in_full_are_not(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list agents", " Agent ID | Host | Port | Status | Cluster\n ag1 | 10.1.5.1 | 8080 | Down | \n")
    assert transport.read("agent") == [
        {"id": "ag1", "host": "10.1.5.1", "port": 8080, "state": "Down", "cluster": None}
    ]
    assert recorded.calls == ["vipu-admin list agents"]


def test_clusters_allocations_and_users(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints(
        "list clusters", " Cluster | Agents | ILDs | Topology\n cl0 | ag0,ag1 | 1 | Torus\n c1 | ag2 | 1 |\n"
    )
    recorded.prints("list allocations", " Allocation ID | Agents\n---\n alloc-1 | ag0 ag1\n")
    recorded.prints("list users", " User | Allocations\n alice | alloc-1\n bob |\n")
    assert transport.read_all(["cluster", "allocation", "user"]) == {
        "cluster": [
            {"id": "cl0", "agents": ["ag0", "ag1"], "num_ilds": 1, "topology": "torus"},
            {"id": "c1", "agents": ["ag2"], "num_ilds": 1},
        ],
        "allocation": [{"id": "alloc-1", "agents": ["ag0", "ag1"], "size": 2}],
        "user": [{"id": "alice", "allocations": ["alloc-1"]}, {"id": "bob", "allocations": []}],
    }


def test_what_cannot_be_read_is_never_taken_for_nothing(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list agents", "rpc error: connection closed\n")
    assert refusal(lambda: transport.read("agent")) == (
        "Cannot read the list of agents that the command has printed: no column 'agent id' or 'agent': 'rpc error: "
        "connection closed'. Check that the command and the controller are of the same release."
    )
    recorded.prints("list partitions", OLDER_PARTITIONS.replace("64   | 2 ", "many | 2 "))
    assert "no number: 'many'" in refusal(lambda: transport.read("partition"))


def test_a_result_line_that_says_failed_counts_whatever_the_exit_status(
    recorded: Recorded, transport: CliTransport
) -> None:
    recorded.prints("list agents", "list agents (all): failed: no permission.\n")
    assert refusal(lambda: transport.read("agent")) == "Cannot list agents: no permission."
    recorded.prints("list agents", "", "list (agents): failed: Cannot list agents: no permission.\n", status=1)
    assert refusal(lambda: transport.read("agent")) == "Cannot list agents: no permission."


def test_an_exit_status_without_a_result_line_counts_too(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list agents", " Agent ID\n ag1\n", "panic: out of memory\n", status=2)
    assert refusal(lambda: transport.read("agent")) == "Cannot list agents: panic: out of memory."
    assert refusal(lambda: transport.read("cluster")) == "Cannot list clusters: unknown command 'list clusters'."
    recorded.prints("list agents", "", "", status=3)
    assert "it ended with status 3 and said nothing" in refusal(lambda: transport.read("agent"))


def test_version(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("--server-version", "version: 1.18.0\nhost: localhost:8090\n")
    assert transport.version() == "1.18.0"


def test_statuses_tell_the_state_and_nothing_that_is_not_known(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list partitions", OLDER_PARTITIONS)
    status = transport.partition_status("p64")
    assert (status["state"], status["operation"], status["errors"], status["retries"]) == ("ACTIVE", None, [], None)
    assert list(transport.partition_statuses(["p64", "gone"])) == ["p64"]
    assert refusal(lambda: transport.partition_status("gone")).endswith("partition 'gone': it does not exist.")


ONE_PARTITION = """\
Partition         | p64
State             | ERROR
Operation         | FAILED
Errors            | Agent 'ag01' refused: no link.
                  | Agent 'ag02' is down.
Auto Resets       | 1 of 3
Last Auto Reset   | 2024-01-01T00:00:00Z
Replicas          | 4
IPU-Link Segments | 1
Sync Type         | ST_GS2_DEFAULT
Reconfigurable    | Yes
"""


def test_one_partition_is_asked_for_what_the_list_leaves_out(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list partitions", OLDER_PARTITIONS.replace("ACTIVE", "ERROR"))
    recorded.prints("get partition p64", ONE_PARTITION)
    told = {"num_replicas": 4, "num_segments": 1, "sync_type": "c2-compatible", "reconfigurable": True}
    assert transport.partition_details(["p64"]) == {"p64": {"id": "p64", "state": "ERROR", **told}}
    assert transport.partition_status("p64") == {
        "id": "p64",
        "state": "ERROR",
        "operation": "FAILED",
        "errors": ["Agent 'ag01' refused: no link.", "Agent 'ag02' is down."],
        "max_retries": 3,
        "retries": 1,
        "last_auto_reset": "2024-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    "printed",
    [
        'Partition p64:\n{"devices": [], "attributes": {}}\n',  # as Graphcore's guides show it
        "",
        ONE_PARTITION.replace("p64", "p6"),
        ONE_PARTITION.replace("| 4", "| four"),
        "get partition (p64): failed: does not exist.\n",
        None,  # no such command
    ],
)
def test_what_one_partition_does_not_tell_is_not_known(
    recorded: Recorded, transport: CliTransport, printed: str | None
) -> None:
    if printed is not None:
        recorded.prints("get partition p64", printed)
    assert transport.partition_details(["p64"]) == {}


def test_ipuof_configuration_of_every_gcd(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list partitions", OLDER_PARTITIONS)
    recorded.prints("get partition p64 --gcd 0 --ipuof-configs", '{"attributes": {"GCD Id": "0"}, "devices": []}\n')
    recorded.prints(
        "get partition p64 --gcd 1 --ipuof-configs", 'a line\n{"attributes": {"GCD Id": "1"}, "devices": []}\n'
    )
    assert [config["attributes"]["GCD Id"] for config in transport.ipuof_config("p64")] == ["0", "1"]
    recorded.prints("get partition p64 --gcd 1 --ipuof-configs", "not ready\n")
    assert "of partition 'p64' that the command has printed: no JSON in 'not ready'" in refusal(
        lambda: transport.ipuof_config("p64")
    )


def test_discovered_agents_that_are_registered_are_told_apart(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list agents", " Agent ID | Host | Port\n ag1 | 10.2.1.5 | 8081\n")
    recorded.prints(
        "discover agent",
        "Host | Port | Network Interface | Time Since Last Seen | Agent Auto-Add ID\n----\n"
        "10.2.1.5 | 8081 | eno3 | 2.154768458s | 10.2.1.5-8081\n"
        "10.2.1.6 | 8080 | eno3 | 1m0.5s | 10.2.1.6-8080\n",
    )
    first, second = transport.discovered()
    assert (first["agent"], first["age"], first["port"]) == ("ag1", pytest.approx(2.154768458), 8081)
    assert (second["agent"], second["age"], second["auto_add_id"]) == (None, 60.5, "10.2.1.6-8080")


# Writing


def test_a_batch_runs_in_the_order_of_dependence(recorded: Recorded, transport: CliTransport) -> None:
    expected = {
        "vipu remove partition old": "remove partition (old): success.",
        "vipu-admin remove allocation a0": "remove allocation (a0): success.",
        "vipu-admin create agent ag1 --host 10.1.5.1 --port 8080": "create agent (ag1): success.",
        "vipu-admin create agent ag2 --host 10.1.5.2 --port 8081": "create agent (ag2): success.",
        "vipu-admin create cluster cl0 --agents ag1,ag2 --num-ipulinkdomains 2 --topology torus "
        "--cluster-topology looped": "create cluster (cl0): success.",
        "vipu-admin create allocation a0 --cluster cl0 --size 2": "create allocation (a0): success.",
        "vipu create partition p1 --size 4 --allocation a0 --num-gcds 2 --gcd-sync-replicas 2 --routing dnc "
        "--sync-type c2-compatible --reconfigurable": "create partition (p1): success.",
        "vipu-admin create user alice --allocations a0,a1": "create user (alice): success. Access key is '6zX_K4uCzN'.",
    }
    for call, output in expected.items():
        recorded.prints(call.split(" ", 1)[1], output)
    steps = [
        step("user", "alice", allocations=["a0", "a1"]),
        step(
            "partition",
            "p1",
            size=4,
            allocation="a0",
            num_gcds=2,
            num_replicas=2,
            routing="dnc",
            sync_type="c2-compatible",
            reconfigurable=True,
            relocatable=False,
        ),
        step("allocation", "a0", Action.RECREATE, cluster="cl0", size=2),
        step("partition", "old", Action.DELETE),
        step("cluster", "cl0", agents=["ag1", "ag2"], num_ilds=2, topology="torus"),
        step("agent", "ag1", host="10.1.5.1"),
        step("agent", "ag2", host="10.1.5.2", port=8081),
    ]
    assert transport.write(steps, force=False) == []
    assert recorded.calls == list(expected)
    assert transport.access_key("alice") == "6zX_K4uCzN"


def test_force_goes_to_removals(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("remove cluster cl0 --force", "remove cluster (cl0): success.")
    assert transport.write([step("cluster", "cl0", Action.DELETE)], force=True) == []


def test_the_first_failure_ends_a_batch(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("create agent ag1 --host h1 --port 8080", "create agent (ag1): success.")
    recorded.prints("create agent ag2 --host h2 --port 8080", "create agent (ag2): failed: no answer.")
    steps = [
        step("agent", "ag1", host="h1"),
        step("agent", "ag2", host="h2"),
        step("agent", "ag3", host="h3"),
        step("cluster", "cl0", agents=["ag1"]),
    ]
    errors = transport.write(steps, force=False)
    assert said(errors) == [
        ("agent", "ag2", Failure.REFUSED),
        ("agent", "ag3", Failure.NOT_TRIED),
        ("cluster", "cl0", Failure.NOT_TRIED),
    ]
    assert errors[0].sentence == "Cannot create agent 'ag2': no answer."
    assert recorded.calls[-1].startswith("vipu-admin create agent ag2")


def test_what_was_removed_to_be_made_anew_is_half_done(recorded: Recorded, transport: CliTransport) -> None:
    for id in ("p1", "p2"):
        recorded.prints(f"remove partition {id}", f"remove partition ({id}): success.")
    recorded.prints("create partition p1 --size 4 --allocation a1", "create partition (p1): failed: no place.")
    recorded.prints("list partitions", "")
    errors = transport.write(
        [
            step("partition", "p1", Action.RECREATE, size=4, allocation="a1"),
            step("partition", "p2", Action.RECREATE, size=4, allocation="a1"),
            step("partition", "p3", size=4, allocation="a1"),
        ],
        force=False,
    )
    assert said(errors) == [
        ("partition", "p1", Failure.HALF_DONE),
        ("partition", "p2", Failure.HALF_DONE),
        ("partition", "p3", Failure.NOT_TRIED),
    ]
    assert errors[0].sentence == (
        "Partition 'p1' was removed and is not made anew: Cannot create partition 'p1': no place."
    )


@pytest.mark.parametrize(
    ("impossible", "sentence"),
    [
        (
            step("agent", "ag1", Action.CHANGE, host="h2"),
            "Cannot change agent 'ag1' over the command line: it has no command for that",
        ),
        (step("allocation", "a1", cluster="c", agents=["ag1"]), "it has no flag for agents"),
        (step("user", "root", role="admin"), "it has no flag for role admin"),
        (
            step("partition", "p", size=1, allocation="a", relocatable=True, gw_routing="ring"),
            "it has no flag for gw_routing and relocatable",
        ),
        (step("agent", "--force", host="h"), "There can be no agent '--force'"),
        (step("agent", "a b", Action.DELETE), "There can be no agent 'a b'"),
        (step("agent", "ag1", host="--force"), "Cannot create agent 'ag1': '--force' is no host"),
        (step("agent", "ag1", host="h1 --force"), "Cannot create agent 'ag1': 'h1 --force' is no host"),
        (step("agent", "ag1", host="h1,h2"), "Cannot create agent 'ag1': 'h1,h2' is no host"),
        (step("agent", "ag1", host="h1\n"), "is no host"),
        (
            step("cluster", "cl0", agents=["ag0", "--force"], num_ilds=1),
            "Cannot create cluster 'cl0': there can be no agent '--force': a name has",
        ),
        (step("cluster", "cl0", agents=["ag0,ag7"], num_ilds=1), "there can be no agent 'ag0,ag7'"),
        (step("cluster", "cl0", agents=["ag0", ""], num_ilds=1), "there can be no agent ''"),
        (step("allocation", "a1", cluster="-c", size=1), "Cannot create allocation 'a1': there can be no cluster '-c'"),
        (step("partition", "p", size=1, allocation="--force"), "there can be no allocation '--force'"),
        (step("partition", "p", size=1, cluster="c d"), "there can be no cluster 'c d'"),
        (step("user", "eve", allocations=["a1", "-f"]), "Cannot create user 'eve': there can be no allocation '-f'"),
    ],
)
def test_what_no_command_can_do_is_refused_before_the_first_runs(
    recorded: Recorded, transport: CliTransport, impossible: Step, sentence: str
) -> None:
    errors = transport.write([step("agent", "ag0", host="h0"), impossible], force=False)
    assert said(errors) == [
        (impossible.family.kind, impossible.key, Failure.REFUSED),
        ("agent", "ag0", Failure.NOT_TRIED),
    ]
    assert sentence in errors[0].sentence
    assert recorded.calls == []


@pytest.mark.parametrize(
    ("printed", "quoted"),
    [
        ("Created.\n", "'Created.'"),
        ("", "an empty output"),
        ("remove user (alice): success.\n", "'remove user (alice): success.'"),
        ("alice: Access key is '6zX_K4uCzN0'.\n", "\"alice: Access key is '…'.\""),
    ],
)
def test_without_its_result_line_nothing_is_taken_for_done(
    recorded: Recorded, transport: CliTransport, printed: str, quoted: str
) -> None:
    recorded.prints("create user alice", printed)
    (error,) = transport.write([step("user", "alice")], force=False)
    assert error.sentence == (
        "It is not known whether 'vipu-admin create user alice' did its work: it has printed no result line, but "
        f"{quoted}."
    )


@pytest.mark.parametrize(("state", "done"), [("PENDING", True), ("ERROR", True), ("ACTIVE", False), (None, False)])
def test_a_partition_that_does_not_become_active_was_created_all_the_same(
    recorded: Recorded, transport: CliTransport, state: str | None, done: bool
) -> None:
    recorded.prints("create partition p64 --size 64 --allocation a", "", "create partition (p64): failed: slow.\n", 1)
    recorded.prints("list partitions", OLDER_PARTITIONS.replace("ACTIVE", state) if state else "")
    errors = transport.write([step("partition", "p64", size=64, allocation="a")], force=False)
    assert (errors == []) == done


def test_reset(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("reset partition p64", "reset partition (p64): success.")
    transport.reset_partition("p64", relocatable=False)
    assert "no flag for it" in refusal(lambda: transport.reset_partition("p64", relocatable=True))
    assert "There can be no partition" in refusal(lambda: transport.reset_partition("--help", relocatable=False))
    recorded.prints("reset partition p64", "reset partition (p64): failed: no answer.")
    recorded.prints("list partitions", OLDER_PARTITIONS)
    assert "no answer" in refusal(lambda: transport.reset_partition("p64", relocatable=False))
    recorded.prints("list partitions", OLDER_PARTITIONS.replace("ACTIVE", "ERROR"))
    transport.reset_partition("p64", relocatable=False)


def test_a_key_that_is_not_told_is_missed(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("create user alice", "create user (alice): success.\n")
    (error,) = transport.write([step("user", "alice")], force=False)
    assert "has not told its access key" in error.sentence


# Processes


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
