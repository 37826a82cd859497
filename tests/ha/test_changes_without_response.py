# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules whose change is in flight when the leader fails: they read the state from the next leader, and continue."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.contract import admin
from tests.ha.controllers import Controller, Controllers, listed
from tests.ha.lost_replies import LostReply, killed_after, killed_before, without_etcd
from tests.integration.collection.playbook import results
from tests.waiting import until

Task = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """A task with one change: the method of its call, the partitions after it, and its result."""

    task: Task
    method: str
    partitions: set[str]
    result: dict[str, Any]


_PARTITION = {"allocation": "a1", "size": 1}
_POD_RESULT = {"created": ["p1"], "updated": [], "recreated": [], "removed": ["p0"], "unchanged": []}
CHANGES = {
    "create": Change({"openipu.pod.vipu_partition": {"id": "p1", **_PARTITION}}, "CreatePartition", {"p0", "p1"}, {}),
    "remove": Change({"openipu.pod.vipu_partition": {"id": "p0", "state": "absent"}}, "RemovePartition", set(), {}),
    "batch": Change(
        {"openipu.pod.vipu_pod": {"partitions": [{"id": "p1", **_PARTITION}], "prune": ["partitions"]}},
        "AdminService/Apply",
        {"p1"},
        {"partitions": _POD_RESULT},
    ),
}


@pytest.mark.parametrize("fault", [killed_before, killed_after, without_etcd])
@pytest.mark.parametrize(
    ("change", "fast_path"),
    [*((change, True) for change in CHANGES.values()), (CHANGES["create"], False)],
    ids=[*CHANGES, "create by the module"],
)
def test_a_change_is_made_once(
    controllers: Controllers,
    leader: Controller,
    tmp_path: Path,
    change: Change,
    fault: Callable[..., LostReply],
    fast_path: bool,
) -> None:
    (other,) = (each for each in controllers.all if each is not leader)
    folder = tmp_path / "play"
    folder.mkdir()

    def done() -> bool:
        return set(listed(leader.address)) == change.partitions

    with closing(fault(leader, change.method, done)) as network:
        first, second = results(
            folder,
            [change.task, change.task],
            "--diff",
            controller={"api_host": f"{network.address},{other.address}", "timeout": 60},
            openipu_fast_path=fast_path,
        )
        assert network.happened
    assert not first["failed"], first
    assert (first["changed"], second["changed"]) == (True, False)
    assert first["diff"]["before"] != first["diff"]["after"]
    assert {name: first[name] for name in change.result} == change.result
    assert other.leads()
    assert set(listed(other.address)) == change.partitions


def test_a_lost_access_key_is_reported(controllers: Controllers, leader: Controller, tmp_path: Path) -> None:
    (other,) = (each for each in controllers.all if each is not leader)
    folder = tmp_path / "play"
    folder.mkdir()
    file = folder / "alice.hcl"

    def kill() -> None:
        until(lambda: users(leader.address) == ["alice"])
        leader.kill()

    with closing(LostReply(leader.address, "AdminService/Apply", after=kill)) as network:
        made, removed, again = results(
            folder,
            [
                {"openipu.pod.vipu_user": {"id": "alice", "config_dest": str(file)}, "ignore_errors": True},
                {"openipu.pod.vipu_user": {"id": "alice", "state": "absent"}},
                {"openipu.pod.vipu_user": {"id": "alice", "config_dest": str(file)}},
            ],
            controller={"api_host": f"{network.address},{other.address}", "timeout": 60},
        )
        assert network.happened
    assert "returned no access key. Remove user 'alice' and create it again." in made["msg"]
    assert [each["failed"] for each in (made, removed, again)] == [True, False, False]
    assert [each["changed"] for each in (made, removed, again)] == [True, True, True]
    assert file.exists()


def users(address: str) -> list[str]:
    with grpc.insecure_channel(address) as channel:
        reply = admin.stub(channel, "AdminService").ListUsers(admin.ListUsersRequest(), timeout=10)
    return [each.id for each in reply.users]
