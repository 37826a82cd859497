# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUs that nodes advertise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.kubernetes.domain import visibility
from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.tracking import Owner, Record
from openipu.kubernetes.domain.visibility import OWNER_ANNOTATION, Partition, Policy, UsableIpus

FIRST = Controller("pod001", 8090, ("ipunode", "node1"))
SECOND = Controller("pod002", 8090, ("ipunode", "node1"))
OTHER = Controller("pod003", 8090, ("ipunode", "node2"))
ANYWHERE = Controller("pod004", 8090)

POLICY = Policy("ipu-system")
MASTER = "node-role.kubernetes.io/master"


def node(labels: dict[str, str] | None = None, ipus: str = "", owner: str = "", allocatable: str = "") -> Any:
    found = {"graphcore.ai/ipu": ipus} if ipus else {}
    status = {
        "capacity": {"cpu": "4", **found},
        "allocatable": {"cpu": "4", **({"graphcore.ai/ipu": allocatable} if allocatable else found)},
    }
    annotations = {OWNER_ANNOTATION: owner} if owner else {}
    return {"metadata": {"name": "n1", "labels": labels or {}, "annotations": annotations}, "status": status}


def patched(node: Any, usable: dict[Controller, int | None], policy: Policy = POLICY) -> str | None:
    """Return the new value of the resource: empty if it is removed, None without a change."""
    change = visibility.change(node, usable, policy)
    if change is None:
        return None
    values = {change["status"][each]["graphcore.ai/ipu"] for each in ("capacity", "allocatable")}
    (value,) = values
    assert change["metadata"]["annotations"] == {OWNER_ANNOTATION: policy.owner if value is not None else None}
    return value or ""


@pytest.mark.parametrize(
    ("labels", "usable", "expected"),
    [
        ({"ipunode": "node1"}, {FIRST: 32, OTHER: 16}, "32"),
        ({"ipunode": "node1"}, {FIRST: 32, SECOND: 16}, "48"),  # it reaches both
        ({"ipunode": "node1"}, {FIRST: 0}, "0"),
        ({"ipunode": "node9"}, {FIRST: 32}, None),
        ({}, {FIRST: 32}, None),
        ({}, {ANYWHERE: 8}, "8"),
        ({"ipunode": "node2"}, {OTHER: 16, ANYWHERE: 8}, "24"),
        ({"ipunode": "node1"}, {FIRST: 32, SECOND: None}, None),  # unknown
        ({"ipunode": "node1", MASTER: ""}, {FIRST: 32}, None),
    ],
)
def test_a_node_advertises_the_ipus_that_it_reaches(
    labels: dict[str, str], usable: dict[Controller, int | None], expected: str | None
) -> None:
    assert patched(node(labels), usable) == expected


@pytest.mark.parametrize("label", [MASTER, "node-role.kubernetes.io/control-plane"])
def test_control_planes_advertise_only_if_the_policy_says_so(label: str) -> None:
    found = node({"ipunode": "node1", label: ""})
    assert patched(found, {FIRST: 32}) is None
    assert patched(found, {FIRST: 32}, Policy("ipu-system", control_plane=True)) == "32"
    advertised = node({"ipunode": "node1", label: ""}, "32", "ipu-system")
    assert patched(advertised, {FIRST: 32}) == ""


def test_the_resource_is_removed_without_the_label_or_when_it_is_switched_off() -> None:
    assert patched(node({}, "32", "ipu-system"), {FIRST: 32}) == ""
    labelled = node({"ipunode": "node1"}, "32", "ipu-system")
    assert patched(labelled, {FIRST: 32}, Policy("ipu-system", enabled=False)) == ""
    assert patched(labelled, {}) == ""  # the controller has left the list


def test_a_present_value_is_not_written_again() -> None:
    labels = {"ipunode": "node1"}
    assert patched(node(labels, "32", "ipu-system"), {FIRST: 32}) is None
    assert patched(node(labels, "2k", "ipu-system"), {FIRST: 2000}) is None
    assert patched(node(labels, "32", "ipu-system", allocatable="16"), {FIRST: 32}) == "32"
    assert patched(node(labels, "16", "ipu-system"), {FIRST: 32}) == "32"


def test_values_of_others_are_not_removed() -> None:
    assert patched(node({}, "32"), {FIRST: 32}) is None  # of a device plugin, for example
    assert patched(node({}, "32", "other"), {FIRST: 32}) is None
    assert patched(node({"ipunode": "node1"}, "16", "other"), {FIRST: 32}) is None
    assert patched(node({"ipunode": "node1"}, "16"), {FIRST: 32}) == "32"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("", None), ("0", 0), ("64", 64), (64, 64), ("2k", 2000), ("3M", 3_000_000), ("1.5", None)],
)
def test_quantities(text: str | int | None, expected: int | None) -> None:
    assert visibility.quantity(text) == expected


def record(id: str, size: int) -> Record:
    return Record(id, Owner("IPUJob", "a", id, id), 0, size, 1, "pod001:8090")


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.sampled_from([1, 2, 4, 8]), st.booleans())))
def test_usable_ipus_do_not_depend_on_own_partitions(found: dict[str, tuple[int, bool]]) -> None:
    partitions = {id: Partition("ACTIVE", size) for id, (size, _) in found.items()}
    records = [record(id, size) for id, (size, is_own) in found.items() if is_own]
    others = sum(size for size, is_own in found.values() if not is_own)
    assert visibility.usable_ipus(64, partitions, records) == 64 - others
    absent = {id: each for id, each in partitions.items() if not found[id][1]}  # own ones are not created yet
    assert visibility.usable_ipus(64, absent, records) == 64 - others


def test_partitions_of_other_clusters_do_not_count() -> None:
    assert visibility.usable_ipus(64, {"a": Partition("ACTIVE", 16, is_counted=False)}, []) == 64


def test_ipus_of_a_silent_controller_are_kept_for_a_while() -> None:
    usable = UsableIpus(600.0, now=1000.0)
    assert usable.get("pod001:8090", 1599.0) is None  # the proxy has just started
    assert usable.get("pod001:8090", 1600.0) == 0
    usable.update("pod001:8090", 32, 1700.0)
    assert usable.get("pod001:8090", 2299.0) == 32
    assert usable.get("pod001:8090", 2300.0) == 0
    usable.update("pod001:8090", 16, 2400.0)
    assert usable.get("pod001:8090", 2401.0) == 16
