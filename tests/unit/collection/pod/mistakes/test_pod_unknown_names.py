# SPDX-License-Identifier: GPL-3.0-or-later
"""Many unknown names in one file: each is reported, and the search for similar names does not grow with them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod import mistakes
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from ansible_collections.openipu.pod.plugins.module_utils.pod.mistakes import Mistakes, unknown

RACKS = {number: range(1, 17) for number in range(1, 17)}
MACHINES = 256
LIMIT = 100_000  # comparisons of names in one run


def messages(path) -> list[str]:
    with pytest.raises(PodError) as caught:
        load(str(path))
    return [each.message for each in caught.value.mistakes]


def machines(names: Iterable[str]) -> dict[str, str]:
    """Return the content of a POD whose cluster has machines of these names."""
    return {"cluster": f"machines: [{', '.join(names)}]"}


def cables(names: Iterable[str]) -> dict[str, str | None]:
    """Return the content of a POD with cables of devices of these names."""
    rows = (f"{{device: {name}, connector: rnic, switch: tor, port: Ethernet20/1}}" for name in names)
    devices = "switches: [{name: tor, kind: data}, {name: mgmt, kind: management}]"
    return {"cluster": None, "tail": f"  - {{name: more, number: 17, {devices}, cables: [{', '.join(rows)}]}}\n"}


@pytest.mark.parametrize("content", [machines, cables])
def test_comparisons_do_not_grow_with_the_unknown_names(pod, monkeypatch, content):
    compared = 0

    def count(_name, known):
        nonlocal compared
        compared += len(known)

    monkeypatch.setattr(mistakes, "similar", count)
    counts = []
    for number in (500, 1000):
        compared = 0
        found = messages(pod.write(racks=RACKS, **content(f"x{each}" for each in range(number))))
        assert len(found) == number
        counts.append(compared)
    assert counts[0] == counts[1]
    assert LIMIT <= counts[0] < LIMIT + 2 * MACHINES


def test_an_unknown_name_without_a_suggestion_has_a_remedy():
    found = Mistakes()
    known = [f"m{number}" for number in range(LIMIT)]
    assert found.may_compare(len(known))
    assert unknown("machine", "n1", known, found) == "unknown machine 'n1': use one of the 100000 known names"
    # Fixed sets of names, such as keys, are not limited.
    assert unknown("key", "nam", ["name"]) == "unknown key 'nam': did you mean 'name'?"


def test_all_unknown_names_of_an_ordinary_file_have_a_suggestion(pod):
    names = [f"m1,{unit}" for unit in range(1, 17)]
    found = messages(pod.write(racks={1: range(1, 17)}, **machines(f"'{name}'" for name in names)))
    assert found == [
        f"cluster 'cl': unknown machine '{name}': did you mean '{name.replace(',', '.')}'?" for name in names
    ]


@pytest.mark.parametrize(
    ("known", "listed"),
    [
        ({"Ethernet10", "Ethernet2", "Ethernet1", "Management1"}, "Ethernet1, Ethernet2, Ethernet10, Management1"),
        ({"Ethernet9/1", "Ethernet10/2", "Ethernet10/1"}, "Ethernet9/1, Ethernet10/1, Ethernet10/2"),
        ({"7", "a²", "a10", "a9"}, "7, a9, a10, a²"),
    ],
)
def test_known_names_are_in_natural_order(known, listed):
    assert unknown("port", "zzz", known) == f"unknown port 'zzz': known are {listed}"


def test_the_lowest_ports_of_a_switch_are_listed(pod):
    tail = ", switches: [{name: tor, kind: data}, {name: mgmt, kind: management, uplinks: [Port7]}]"
    (found,) = messages(pod.write(rack_tail=tail))
    ports = ", ".join(f"Ethernet{number}" for number in range(1, 21))
    assert found == f"switch 'mgmt': unknown port of a DCS-7010T-48-F 'Port7': known are {ports} and 33 more"
