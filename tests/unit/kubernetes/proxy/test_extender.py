# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of the scheduler extender, in both forms of requests."""

from __future__ import annotations

from typing import Any

from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.scheduling import Room
from openipu.kubernetes.proxy import extender
from openipu.kubernetes.proxy.extender import ExtenderArgs
from tests.unit.kubernetes.domain.test_scheduling import pod

ROOMS = {Controller("pod001", 8090, ("ipunode", "node1")): Room({4: 1}, 4)}
LABELS = {"n1": {"ipunode": "node1"}, "n2": {"ipunode": "node2"}}
REJECTED = {"n2": "node carries the label of no V-IPU controller"}


def answer(**request: Any) -> Any:
    found = extender.answer(ExtenderArgs(**request), ROOMS, LABELS.get)
    return found.model_dump()


def nodes() -> dict[str, Any]:
    return {
        "metadata": {"resourceVersion": "1"},
        "items": [{"metadata": {"name": name, "labels": labels}, "spec": {"x": 1}} for name, labels in LABELS.items()],
    }


def test_names() -> None:
    found = answer(Pod=pod("4"), NodeNames=["n1", "n2", "n9"])
    assert found["NodeNames"] == ["n1"]
    assert found["Nodes"] is None
    assert found["FailedNodes"] == {**REJECTED, "n9": REJECTED["n2"]}
    assert found["Error"] == ""


def test_objects() -> None:
    found = answer(Pod=pod("4"), Nodes=nodes())
    assert found["NodeNames"] is None
    assert found["Nodes"] == {"metadata": {"resourceVersion": "1"}, "items": nodes()["items"][:1]}
    assert found["FailedNodes"] == REJECTED


def test_pods_without_ipus_pass() -> None:
    assert answer(Pod=pod(), NodeNames=["n1", "n2", "n9"])["NodeNames"] == ["n1", "n2", "n9"]
    assert answer(Pod=pod(), Nodes=nodes())["Nodes"]["items"] == nodes()["items"]


def test_an_impossible_request_fits_nowhere() -> None:
    found = answer(Pod=pod("3"), NodeNames=["n1"])
    assert found["NodeNames"] == []
    assert found["FailedNodes"] == {"n1": "a partition cannot have 3 IPUs, only a power of two up to 64"}


def test_no_nodes() -> None:
    assert answer(Pod=pod("4"), NodeNames=[])["FailedNodes"] == {}
