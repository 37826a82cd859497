# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of tenants, derived from the tags of their projects."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from openipu.dashboard.ownership import Objects, all_vpods, ipus, owned, project, vpods


def allocation(id: str, *agents: str) -> dict[str, Any]:
    return {"id": id, "agents": list(agents)}


def partition(id: str, allocation: str, state: str = "ACTIVE") -> dict[str, Any]:
    return {"id": id, "allocation": allocation, "state": state, "size": 4, "errors": []}


OBJECTS = Objects(
    [allocation("blue", "ag01"), allocation("red", "ag02", "ag03"), allocation("own", "ag04"), allocation("x", "ag05")],
    [partition("blue", "blue"), partition("second", "red"), partition("green", "own"), partition("x1", "x")],
)


def test_tags_name_vpods() -> None:
    found = project("a1", "research", ["openipu.pod=red", "openipu.role=x:y:red", "other", "openipu.pod=blue"])
    assert found.vpods == ("blue", "red")


def test_a_project_without_records_owns_nothing() -> None:
    assert owned(project("a1", "blue", []), OBJECTS) == Objects([], [])
    assert vpods(project("a1", "blue", ["blue"]), OBJECTS) == []


def test_all_partitions_of_an_allocation_belong_to_its_vpod() -> None:
    [found] = vpods(project("a1", "research", ["openipu.pod=red"]), OBJECTS)
    assert (found.allocation, found.machines, found.ipus) == ("red", ("ag02", "ag03"), 8)
    assert [each["id"] for each in found.partitions] == ["second"]


def test_a_tenant_with_its_own_data_network_has_one_allocation() -> None:
    objects = Objects(OBJECTS.allocations, [*OBJECTS.partitions, partition("lime", "own")])
    team = project("a1", "team", ["openipu.pod=green", "openipu.pod=lime"])
    green, lime = vpods(team, objects)
    assert (green.allocation, lime.allocation) == ("own", "own")
    assert [each["id"] for each in green.partitions] == ["green"]
    assert [each["id"] for each in lime.partitions] == ["lime"]


def test_a_vpod_that_is_being_created_has_no_allocation() -> None:
    [found] = vpods(project("a1", "research", ["openipu.pod=new"]), OBJECTS)
    assert (found.name, found.allocation, found.ipus) == ("new", "", 0)


def test_operators_see_all_projects_and_other_allocations() -> None:
    found = all_vpods([project("b", "team", ["openipu.pod=red"]), project("a", "lab", ["openipu.pod=blue"])], OBJECTS)
    assert [(each.project, each.name) for each in found] == [("lab", "blue"), ("team", "red"), ("", "own"), ("", "x")]


def test_an_allocation_counts_once() -> None:
    """A tenant can have rights to an order of the team, which operators see too."""
    order = allocation("team.order", "m1", "m2")
    assert ipus([order, allocation("red", "m3"), order]) == 12


_IDS = st.text("abc", min_size=1, max_size=2)


@given(
    first=st.lists(_IDS, unique=True, max_size=4),
    second=st.lists(_IDS, unique=True, max_size=4),
    partitions=st.dictionaries(_IDS, _IDS, max_size=6),
)
def test_two_projects_share_nothing(first: list[str], second: list[str], partitions: dict[str, str]) -> None:
    """The role vpod gives no two vPODs one name, and puts a partition in the allocation of its vPOD."""
    second = [name for name in second if name not in first]
    placed = {id: place if id == place or id not in (*first, *second) else id for id, place in partitions.items()}
    objects = Objects(
        [allocation(id, id) for id in sorted({*placed.values(), *first, *second})],
        [partition(id, place) for id, place in placed.items()],
    )
    one, other = (
        owned(project(str(number), "p", [f"openipu.pod={name}" for name in names]), objects)
        for number, names in enumerate((first, second))
    )
    for mine, theirs in ((one.allocations, other.allocations), (one.partitions, other.partitions)):
        assert not {each["id"] for each in mine} & {each["id"] for each in theirs}
