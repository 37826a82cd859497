# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of reading over the command lines, with the output of several releases."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.command_line import CliTransport

from tests.unit.collection.vipu.cli_steps import AGENT_1, NEWER_PARTITIONS, OLDER_PARTITIONS, rejection
from tests.unit.collection.vipu.recorded import Recorded


def test_partitions_of_two_releases(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list partitions", OLDER_PARTITIONS)
    assert transport.read("partition") == [
        # This release does not print the allocation. The GW routing DEFAULT is no known value.
        {"id": "p64", "cluster": "c64_1-16", "size": 64, "num_gcds": 2, "routing": "ringswnc", "state": "ACTIVE"}
    ]
    recorded.prints("list partitions", NEWER_PARTITIONS)
    assert transport.read("partition") == [
        {"id": "p1", "allocation": "a1", "cluster": "cl0", "size": 4, "num_gcds": 1, "state": "PENDING"}
    ]


def test_agents_listed_by_name_only_are_read_one_by_one(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list agents", "Agent ID\n--------\nag1\nag2\nag3\n")
    for n in (1, 2, 3):
        recorded.prints(f"get agent ag{n}", AGENT_1.replace("ag1", f"ag{n}").replace("10.1.5.1", f"10.1.5.{n}"))
    assert transport.read("agent") == [
        {"id": f"ag{n}", "host": f"10.1.5.{n}", "port": 8081, "state": "Up", "in_service": True} for n in (1, 2, 3)
    ]
    assert sorted(recorded.calls) == [
        *(f"vipu-admin get agent ag{n}" for n in (1, 2, 3)),
        "vipu-admin list agents",
    ]


def test_agents_listed_in_full_need_one_command(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list agents", " Agent ID | Host | Port | Status | Cluster\n ag1 | 10.1.5.1 | 8080 | Down | \n")
    assert transport.read("agent") == [
        {"id": "ag1", "host": "10.1.5.1", "port": 8080, "state": "Down", "cluster": None, "in_service": True}
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


def test_unreadable_output_is_not_an_empty_list(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list agents", "rpc error: connection closed\n")
    assert rejection(lambda: transport.read("agent")) == (
        "Cannot read the list of agents from the output of the command: no column 'agent id' or 'agent': 'rpc error: "
        "connection closed'. Check that the command and the controller are of the same release."
    )
    recorded.prints("list partitions", OLDER_PARTITIONS.replace("64   | 2 ", "many | 2 "))
    assert "not a number: 'many'" in rejection(lambda: transport.read("partition"))


def test_failed_result_line_counts_with_any_exit_status(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list agents", "list agents (all): failed: no permission.\n")
    assert rejection(lambda: transport.read("agent")) == "Cannot list agents: no permission."
    recorded.prints("list agents", "", "list (agents): failed: Cannot list agents: no permission.\n", status=1)
    assert rejection(lambda: transport.read("agent")) == "Cannot list agents: no permission."


def test_exit_status_without_result_line_counts(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list agents", " Agent ID\n ag1\n", "panic: out of memory\n", status=2)
    assert rejection(lambda: transport.read("agent")) == "Cannot list agents: panic: out of memory."
    assert rejection(lambda: transport.read("cluster")) == "Cannot list clusters: unknown command 'list clusters'."
    recorded.prints("list agents", "", "", status=3)
    assert "it ended with status 3 and without a message" in rejection(lambda: transport.read("agent"))


def test_version(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("--server-version", "version: 1.18.0\nhost: localhost:8090\n")
    assert transport.version() == "1.18.0"


def test_status_has_none_for_unknown_values(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list partitions", OLDER_PARTITIONS)
    status = transport.partition_status("p64")
    assert (status["state"], status["operation"], status["errors"], status["retries"]) == ("ACTIVE", None, [], None)
    assert list(transport.partition_statuses(["p64", "gone"])) == ["p64"]
    assert rejection(lambda: transport.partition_status("gone")).endswith(
        "partition 'gone': it does not exist. Create it first."
    )


ONE_PARTITION = """\
Partition         | p64
State             | ERROR
Operation         | FAILED
Errors            | Agent 'ag01' rejected its share: no link.
                  | Agent 'ag02' is down.
Auto Resets       | 1 of 3
Last Auto Reset   | 2024-01-01T00:00:00Z
Replicas          | 4
IPU-Link Segments | 1
Sync Type         | ST_GS2_DEFAULT
Reconfigurable    | Yes
"""


def test_details_come_from_get_partition(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list partitions", OLDER_PARTITIONS.replace("ACTIVE", "ERROR"))
    recorded.prints("get partition p64", ONE_PARTITION)
    details = {"num_replicas": 4, "num_segments": 1, "sync_type": "c2-compatible", "reconfigurable": True}
    assert transport.partition_details(["p64"]) == {"p64": {"id": "p64", "state": "ERROR", **details}}
    assert transport.partition_status("p64") == {
        "id": "p64",
        "state": "ERROR",
        "operation": "FAILED",
        "errors": ["Agent 'ag01' rejected its share: no link.", "Agent 'ag02' is down."],
        "max_retries": 3,
        "retries": 1,
        "last_auto_reset": "2024-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    "printed",
    [
        'Partition p64:\n{"devices": [], "attributes": {}}\n',  # from Graphcore's guides
        "",
        ONE_PARTITION.replace("p64", "p6"),
        ONE_PARTITION.replace("| 4", "| four"),
        "get partition (p64): failed: does not exist.\n",
        None,  # no such command
    ],
)
def test_unreadable_details_are_unknown(recorded: Recorded, transport: CliTransport, printed: str | None) -> None:
    if printed is not None:
        recorded.prints("get partition p64", printed)
    assert transport.partition_details(["p64"]) == {}


def test_ipuof_configuration_of_all_gcds(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("list partitions", OLDER_PARTITIONS)
    recorded.prints("get partition p64 --gcd 0 --ipuof-configs", '{"attributes": {"GCD Id": "0"}, "devices": []}\n')
    recorded.prints(
        "get partition p64 --gcd 1 --ipuof-configs", 'a line\n{"attributes": {"GCD Id": "1"}, "devices": []}\n'
    )
    assert [config["attributes"]["GCD Id"] for config in transport.ipuof_config("p64")] == ["0", "1"]
    recorded.prints("get partition p64 --gcd 1 --ipuof-configs", "not ready\n")
    assert "of partition 'p64' from the output of the command: no JSON in 'not ready'" in rejection(
        lambda: transport.ipuof_config("p64")
    )


def test_registered_agents_among_discovered_ones(recorded: Recorded, transport: CliTransport) -> None:
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
