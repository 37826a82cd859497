# SPDX-License-Identifier: GPL-3.0-or-later
"""machines.csv with two swapped columns: one message names both."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

HEADER = "name,rack,unit,bmc_mac,gw_mac,rnic_mac,bmc_address,gw_address,rack_unit,serial"


def rows(count: int = 4) -> list[list[str]]:
    """Return the cells of a valid table."""
    return [
        [
            *(f"m{unit}", "rack1", str(unit), *(f"02:0{network}:00:00:01:{unit:02x}" for network in (1, 2, 5))),
            *(f"10.1.1.{unit}", f"10.2.1.{unit}", str(unit + 40), f"SN{unit:03}"),
        ]
        for unit in range(1, count + 1)
    ]


def swap(cells: list[str], first: str, second: str) -> None:
    """Exchange the values of two columns."""
    one, other = (HEADER.split(",").index(name) for name in (first, second))
    cells[one], cells[other] = cells[other], cells[one]


def mistakes(pod, table: list[list[str]]) -> list[tuple[int | None, str]]:
    """Return line and message of each mistake."""
    path = pod.write(rows=[HEADER, *map(",".join, table)])
    with pytest.raises(PodError) as caught:
        load(str(path))
    return [(each.line, each.message) for each in caught.value.mistakes]


def test_the_unchanged_table_is_valid(pod):
    load(str(pod.write(rows=[HEADER, *map(",".join, rows())])))


@pytest.mark.parametrize(
    ("first", "second", "example"),
    [
        ("bmc_mac", "serial", "'SN001' in 'bmc_mac'"),
        ("name", "gw_mac", "'02:02:00:00:01:01' in 'name'"),
        ("rack", "name", "'m1' in 'rack'"),
        ("rack", "unit", "'1' in 'rack'"),
        ("unit", "name", "'m1' in 'unit'"),
        ("rnic_mac", "bmc_address", "'10.1.1.1' in 'rnic_mac'"),
        ("bmc_address", "gw_address", "'10.2.1.1' in 'bmc_address'"),
        ("rack_unit", "serial", "'SN001' in 'rack_unit'"),
        ("unit", "rack_unit", "'41' in 'unit'"),
    ],
)
def test_swapped_columns_are_one_mistake(pod, first, second, example):
    table = rows()
    for cells in table:
        swap(cells, first, second)
    assert mistakes(pod, table) == [
        (
            2,
            f"the values of '{first}' and '{second}' seem to be swapped in 4 lines, such as {example}: swap the two "
            "names in the header, or the values",
        )
    ]


def test_other_mistakes_of_the_lines_are_reported(pod):
    table = rows()
    for cells in table[:3]:
        swap(cells, "bmc_mac", "serial")
    table[1][4] = "x"
    table[3][9] = "SN 4"
    (first, swapped), (second, mac), (third, serial) = mistakes(pod, table)
    assert (first, second, third) == (2, 3, 5)
    assert "'bmc_mac' and 'serial' seem to be swapped in 3 lines" in swapped
    assert mac.startswith("'x' (gw of 'm2') is not a MAC")
    assert serial.startswith("machine 'm4': invalid serial 'SN 4'")


@pytest.mark.parametrize("swapped", [1, 2])
def test_swapped_values_of_few_lines_are_their_own_mistakes(pod, swapped):
    table = rows()
    for cells in table[:swapped]:
        swap(cells, "bmc_mac", "serial")
    assert mistakes(pod, table) == [
        (line, f"'SN{line - 1:03}' (bmc of 'm{line - 1}') is not a MAC: use the form 0c:42:a1:00:00:01")
        for line in range(2, swapped + 2)
    ]


def test_placeholders_are_no_swapped_columns(pod):
    table = rows()
    for cells in table:
        cells[3] = cells[4] = "TBD"
    found = mistakes(pod, table)
    assert len(found) == 8
    assert all("'TBD' (" in message and "is not a MAC" in message for _line, message in found)


@pytest.mark.parametrize("name", ["rack1/m{}", "r1:m{}"])
def test_invalid_names_are_not_taken_for_serials(pod, name):
    table = rows()
    for number, cells in enumerate(table):
        cells[0] = name.format(number)
    messages = [message for _line, message in mistakes(pod, table)]
    assert messages
    assert [message for message in messages if "swapped" in message] == []
