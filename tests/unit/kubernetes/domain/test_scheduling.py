# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes with room for a pod with IPUs."""

from __future__ import annotations

from typing import Any

import pytest

from openipu.kubernetes.domain import scheduling
from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.scheduling import SIZES, Room

FIRST = Controller("pod001", 8090, ("ipunode", "node1"))
SECOND = Controller("pod002", 8090, ("ipunode", "node1"))
OTHER = Controller("pod003", 8090, ("ipunode", "node2"))
NODES = [("n1", {"ipunode": "node1"}), ("n2", {"ipunode": "node2"}), ("n3", {})]
NO_LABEL = "node carries the label of no V-IPU controller"


def pod(annotation: str | None = None, *limits: str, init: str = "", owner: str = "") -> dict[str, Any]:
    def container(ipus: str) -> dict[str, Any]:
        return {"resources": {"limits": {"graphcore.ai/ipu": ipus}, "requests": {"graphcore.ai/ipu": ipus}}}

    return {
        "metadata": {
            "name": "pod",
            "annotations": {} if annotation is None else {"graphcore.ai/ipu": annotation},
            "ownerReferences": [{"kind": owner, "name": "a", "uid": "u"}] if owner else [],
        },
        "spec": {
            "containers": [{"name": "main"}, *map(container, limits)],
            "initContainers": [container(init)] if init else [],
        },
    }


def room(free: int, largest: int) -> Room:
    return Room({size: free // size if size <= largest else 0 for size in SIZES}, free)


def test_sizes() -> None:
    assert SIZES == (1, 2, 4, 8, 16, 32, 64)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod(), 0),
        (pod("4"), 4),
        (pod("4", "4"), 4),
        (pod(None, "8"), 8),
        (pod(None, "2", "2"), 4),
        (pod(None, "2", init="16"), 16),
        (pod("0"), 0),
        (pod(None, "16", owner="IPUJob"), 0),
        (pod("16", owner="ReplicaSet"), 16),
    ],
)
def test_requested_ipus(found: dict[str, Any], expected: int) -> None:
    assert scheduling.requested_ipus(found) == expected


@pytest.mark.parametrize("found", [pod("3"), pod("128"), pod("many"), pod("-1"), pod(None, "2", "1"), pod(None, "1k")])
def test_impossible_requests(found: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a partition cannot have"):
        scheduling.requested_ipus(found)


def test_nodes_with_room_are_selected() -> None:
    found = scheduling.select(NODES, 16, {FIRST: room(32, 32), OTHER: room(16, 16)})
    assert (found.suitable, found.rejected) == (("n1", "n2"), {"n3": NO_LABEL})
    found = scheduling.select(NODES, 32, {FIRST: room(32, 32), OTHER: room(16, 16)})
    text = "V-IPU controller of node has no room for a partition of 32 IPUs"
    assert (found.suitable, found.rejected) == (("n1",), {"n2": text, "n3": NO_LABEL})


def test_one_of_several_controllers_suffices() -> None:
    rooms = {FIRST: Room(responds=False), SECOND: room(8, 8)}
    assert scheduling.select(NODES[:1], 8, rooms).suitable == ("n1",)
    assert scheduling.select(NODES[:1], 16, rooms).suitable == ()


def test_all_nodes_reach_a_controller_without_a_label() -> None:
    assert scheduling.select(NODES, 1, {Controller("pod009", 8090): room(1, 1)}).suitable == ("n1", "n2", "n3")


def test_free_ipus_are_not_enough_if_no_block_fits() -> None:
    rejected = scheduling.select(NODES[:1], 16, {FIRST: room(24, 8)}).rejected
    assert rejected == {"n1": "V-IPU controller of node has no room for a partition of 16 IPUs"}


def test_reservations_since_the_last_round_reduce_the_room() -> None:
    full = Room({1: 2, 2: 1}, free=0)
    rejected = scheduling.select(NODES[:1], 1, {FIRST: full}).rejected
    assert rejected == {"n1": "V-IPU controller of node has no room for a partition of 1 IPU"}


def test_a_controller_that_does_not_respond_has_no_room() -> None:
    rejected = scheduling.select(NODES[:1], 1, {FIRST: Room(responds=False)}).rejected
    assert rejected == {"n1": "V-IPU controller of node does not respond"}
