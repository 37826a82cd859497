# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of writing over the command lines, and of the errors after a partial batch."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, Failure, Step
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.command_line import CliTransport

from tests.unit.collection.vipu.cli_steps import NEWER_PARTITIONS, OLDER_PARTITIONS, failures, rejection, step
from tests.unit.collection.vipu.recorded import Recorded


def test_batch_runs_in_the_order_of_dependencies(recorded: Recorded, transport: CliTransport) -> None:
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


def test_force_is_a_flag_of_removals(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("remove cluster cl0 --force", "remove cluster (cl0): success.")
    assert transport.write([step("cluster", "cl0", Action.DELETE)], force=True) == []


def test_first_failure_ends_the_batch(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("create agent ag1 --host h1 --port 8080", "create agent (ag1): success.")
    recorded.prints("create agent ag2 --host h2 --port 8080", "create agent (ag2): failed: no response.")
    steps = [
        step("agent", "ag1", host="h1"),
        step("agent", "ag2", host="h2"),
        step("agent", "ag3", host="h3"),
        step("cluster", "cl0", agents=["ag1"]),
    ]
    errors = transport.write(steps, force=False)
    assert failures(errors) == [
        ("agent", "ag2", Failure.REJECTED),
        ("agent", "ag3", Failure.NOT_TRIED),
        ("cluster", "cl0", Failure.NOT_TRIED),
    ]
    assert errors[0].message == "Cannot create agent 'ag2': no response."
    assert recorded.calls[-1].startswith("vipu-admin create agent ag2")


def test_removed_but_not_recreated_is_half_done(recorded: Recorded, transport: CliTransport) -> None:
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
    assert failures(errors) == [
        ("partition", "p1", Failure.HALF_DONE),
        ("partition", "p2", Failure.HALF_DONE),
        ("partition", "p3", Failure.NOT_TRIED),
    ]
    assert errors[0].message == (
        "Cannot recreate partition 'p1': it was removed and could not be created again: no place."
    )


@pytest.mark.parametrize(
    ("impossible", "message"),
    [
        (
            step("agent", "ag1", Action.CHANGE, host="h2"),
            "Cannot change agent 'ag1' over the command line: it has no such command",
        ),
        (step("agent", "ag1", host="h", in_service=False), "it has no flag for in_service false"),
        (step("allocation", "a1", cluster="c", agents=["ag1"]), "it has no flag for agents"),
        (step("user", "root", role="admin"), "it has no flag for role admin"),
        (
            step("partition", "p", size=1, allocation="a", relocatable=True, gw_routing="ring"),
            "it has no flag for gw_routing and relocatable",
        ),
        (step("agent", "--force", host="h"), "'--force' is not a valid agent id"),
        (step("agent", "a b", Action.DELETE), "'a b' is not a valid agent id"),
        (step("agent", "ag1", host="--force"), "Cannot create agent 'ag1': '--force' is not a host name"),
        (step("agent", "ag1", host="h1 --force"), "Cannot create agent 'ag1': 'h1 --force' is not a host name"),
        (step("agent", "ag1", host="h1,h2"), "Cannot create agent 'ag1': 'h1,h2' is not a host name"),
        (step("agent", "ag1", host="h1\n"), "is not a host name"),
        (
            step("cluster", "cl0", agents=["ag0", "--force"], num_ilds=1),
            "Cannot create cluster 'cl0': '--force' is not a valid agent id. Use",
        ),
        (step("cluster", "cl0", agents=["ag0,ag7"], num_ilds=1), "'ag0,ag7' is not a valid agent id"),
        (step("cluster", "cl0", agents=["ag0", ""], num_ilds=1), "'' is not a valid agent id"),
        (
            step("allocation", "a1", cluster="-c", size=1),
            "Cannot create allocation 'a1': '-c' is not a valid cluster id",
        ),
        (step("partition", "p", size=1, allocation="--force"), "'--force' is not a valid allocation id"),
        (step("partition", "p", size=1, cluster="c d"), "'c d' is not a valid cluster id"),
        (step("user", "eve", allocations=["a1", "-f"]), "Cannot create user 'eve': '-f' is not a valid allocation id"),
        (step("user", "eve", allocations=["a1", "*"]), "Cannot create user 'eve': '*' is not a valid allocation id"),
        (step("user", "eve", allocations=["none"]), "--allocations none means no allocations"),
    ],
)
def test_impossible_step_is_rejected_before_the_first_command(
    recorded: Recorded, transport: CliTransport, impossible: Step, message: str
) -> None:
    errors = transport.write([step("agent", "ag0", host="h0"), impossible], force=False)
    assert failures(errors) == [
        (impossible.family.kind, impossible.key, Failure.REJECTED),
        ("agent", "ag0", Failure.NOT_TRIED),
    ]
    assert message in errors[0].message
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
def test_missing_result_line_is_an_error(
    recorded: Recorded, transport: CliTransport, printed: str, quoted: str
) -> None:
    recorded.prints("create user alice", printed)
    (error,) = transport.write([step("user", "alice", allocations=["*"])], force=False)
    assert error.message == (
        f"Cannot read the result of command 'vipu-admin create user alice': it printed no result line, but {quoted}. "
        "Check whether it changed anything."
    )


@pytest.mark.parametrize(("state", "done"), [("PENDING", True), ("ERROR", True), ("ACTIVE", False), (None, False)])
def test_created_partition_that_is_not_active_is_no_error(
    recorded: Recorded, transport: CliTransport, state: str | None, done: bool
) -> None:
    recorded.prints("create partition p64 --size 64 --allocation a", "", "create partition (p64): failed: slow.\n", 1)
    recorded.prints("list partitions", OLDER_PARTITIONS.replace("ACTIVE", state) if state else "")
    errors = transport.write([step("partition", "p64", size=64, allocation="a")], force=False)
    assert (errors == []) == done


def test_reset(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("reset partition p64", "reset partition (p64): success.")
    transport.reset_partition("p64", relocatable=False)
    assert "no flag for it" in rejection(lambda: transport.reset_partition("p64", relocatable=True))
    assert "'--help' is not a valid partition id" in rejection(
        lambda: transport.reset_partition("--help", relocatable=False)
    )
    recorded.prints("reset partition p64", "reset partition (p64): failed: no response.")
    recorded.prints("list partitions", OLDER_PARTITIONS)
    assert "no response" in rejection(lambda: transport.reset_partition("p64", relocatable=False))
    recorded.prints("list partitions", OLDER_PARTITIONS.replace("ACTIVE", "ERROR"))
    transport.reset_partition("p64", relocatable=False)


def test_missing_access_key_is_an_error(recorded: Recorded, transport: CliTransport) -> None:
    recorded.prints("create user alice --allocations none", "create user (alice): success.\n")
    (error,) = transport.write([step("user", "alice")], force=False)
    assert "printed no access key" in error.message


@pytest.mark.parametrize(
    ("reason", "size"),
    [("a partition with this id already exists", 4), ("this id is taken", 8)],
    ids=["message of the command", "different partition"],
)
def test_a_pending_partition_of_another_client_is_an_error(
    recorded: Recorded, transport: CliTransport, reason: str, size: int
) -> None:
    recorded.prints(f"create partition p1 --size {size} --allocation a1", f"create partition (p1): failed: {reason}.")
    recorded.prints("list partitions", NEWER_PARTITIONS)
    errors = transport.write([step("partition", "p1", size=size, allocation="a1")], force=False)
    assert failures(errors) == [("partition", "p1", Failure.REJECTED)]
    assert errors[0].message == f"Cannot create partition 'p1': {reason}."
