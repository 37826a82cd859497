# SPDX-License-Identifier: GPL-3.0-or-later
"""One cause that concerns many machines or devices is one mistake, and hides no other."""

from __future__ import annotations

import pytest

from tests.unit.collection.pod.conftest import HEADER

from .test_pod_mistakes import SWITCHES, mistakes

TWO = {1: range(1, 17), 2: range(1, 17)}
SHARED = [
    (
        "racks: [rack1, rack2], num_ilds: 2}\n  - {id: b, racks: [rack2]",
        "cluster 'b' shares machines of rack 'rack2' with cluster 'cl' (line 9): list each machine in one cluster",
    ),
    (
        "racks: [rack2, rack1], num_ilds: 2}\n  - {id: b, num_ilds: 2, racks: [rack1, rack2]",
        "cluster 'b' shares machines of rack 'rack1' and 1 more with cluster 'cl' (line 9): "
        "list each machine in one cluster",
    ),
    (
        "racks: [rack1]}\n  - {id: b, machines: [m1.3, m1.4, m1.5]",
        "cluster 'b' shares machine 'm1.3' and 2 more with cluster 'cl' (line 9): list each machine in one cluster",
    ),
    (
        "machines: [m1.1, m1.2]}\n  - {id: b, machines: [m1.2, m1.3]",
        "cluster 'b' shares machine 'm1.2' with cluster 'cl' (line 9): list each machine in one cluster",
    ),
]


@pytest.mark.parametrize(("clusters", "message"), SHARED)
def test_the_machines_of_two_clusters_are_one_mistake(pod, clusters, message):
    tail = "allocations: [{id: x, cluster: b, size: 1}]\n"
    assert mistakes(pod.write(racks=TWO, cluster=clusters, tail=tail)) == [(10, message)]


def test_each_pair_of_clusters_is_a_mistake(pod):
    clusters = "racks: [rack1]}\n  - {id: b, racks: [rack2]}\n  - {id: c, num_ilds: 2, racks: [rack1, rack2]"
    found = mistakes(pod.write(racks=TWO, cluster=clusters))
    assert [(line, message.partition(":")[0]) for line, message in found] == [
        (11, "cluster 'c' shares machines of rack 'rack1' with cluster 'cl' (line 9)"),
        (11, "cluster 'c' shares machines of rack 'rack2' with cluster 'b' (line 10)"),
    ]


@pytest.mark.parametrize(
    ("cluster", "listed"),
    [
        ("racks: [rack1, rack1]", "machines of rack 'rack1'"),
        ("machines: [m1.3, m1.3], num_ilds: 2", "machine 'm1.3'"),
    ],
)
def test_machines_that_are_twice_in_one_cluster_are_one_mistake(pod, cluster, listed):
    message = f"cluster 'cl' lists {listed} twice: remove one of the entries"
    assert mistakes(pod.write(cluster=cluster)) == [(8, message)]


def test_a_copied_cluster_is_one_mistake(pod):
    cluster = "racks: [rack1]}\n  - {id: cl, racks: [rack1]"
    assert mistakes(pod.write(cluster=cluster)) == [
        (9, "cluster 'cl' is used twice, in line 8 and line 9: use different names")
    ]


@pytest.mark.parametrize(
    ("switch", "lacks", "count", "cable"),
    [
        ("{name: tor, kind: data}", "no management switch", 4 + 1 + 1 + 2, "mgmt"),
        ("{name: mgmt, kind: management}", "no data switch", 4 + 1, "rnic"),
    ],
)
def test_a_missing_kind_of_switch_is_one_mistake(pod, switch, lacks, count, cable):
    rest = ", servers: [{name: s1, addresses: {idrac: 10.3.1.90}}], pdus: [{name: p1}, {name: p2}]"
    assert mistakes(pod.write(rack_tail=f", switches: [{switch}]{rest}")) == [
        (
            6,
            f"rack 'rack1' has {lacks}, so {count} devices have no cable, such as machine 'm1.1' for {cable}: "
            "add it to 'switches', or set 'cables'",
        )
    ]


def test_a_rack_without_switches_and_a_device_without_a_port_are_two_mistakes(pod):
    path = pod.write(racks={1: [1, 20], 2: [1, 2]}, cluster=None, rack_tail=SWITCHES)
    text, _switches, end = path.read_text().rpartition(SWITCHES)
    path.write_text(f"{text}, pdus: [{{name: p}}]{end}")
    assert [message.partition(":")[0] for _line, message in mistakes(path)] == [
        "machine 'm1.20' has no cable for mgmt, rnic, because the reference port map has no port for it",
        "rack 'rack2' has no data and no management switch, so 3 devices have no cable, such as machine 'm2.1' for "
        "mgmt, rnic",
    ]


def rows(*empty: str) -> list[str]:
    """Return the lines of three machines, with empty columns."""
    lines = [HEADER]
    for unit in range(1, 4):
        cells = [f"m{unit}", "rack1", f"{unit}", *(f"02:0{network}:00:00:00:0{unit}" for network in (1, 2, 5))]
        columns = zip(HEADER.split(","), cells, strict=True)
        lines.append(",".join("" if column in empty else cell for column, cell in columns))
    return lines


@pytest.mark.parametrize("column", ["name", "unit", "bmc_mac", "gw_mac", "rnic_mac"])
def test_an_empty_column_is_one_mistake(pod, column):
    tail = "allocations: [{id: a, cluster: cl, size: 3}]\n"
    path = pod.write(rows=rows(column), rack_tail=SWITCHES, tail=tail)
    assert mistakes(path) == [(1, f"the column '{column}' is empty in 3 lines: fill it in")]


def test_an_empty_column_hides_no_other_mistake(pod):
    header, first, second, third = rows("unit")
    invalid = second.replace("02:01", "03:01")
    path = pod.write(rows=[header, first, invalid, third])
    assert [(line, message.partition(":")[0]) for line, message in mistakes(path)] == [
        (1, "the column 'unit' is empty in 3 lines"),
        (3, "MAC 03"),
    ]


def test_an_optional_column_may_be_empty(pod):
    assert len(pod.load(rows=rows("rack")).machines) == 3


def test_a_column_with_one_value_is_a_mistake_of_the_other_lines(pod):
    header, first, _second, _third = rows()
    found = mistakes(pod.write(rows=[header, first, *rows("unit")[2:]]))
    assert found == [
        (3, "machine 'm2': 'unit' is missing: add it"),
        (4, "machine 'm3': 'unit' is missing: add it"),
    ]


def test_machines_without_a_rack_are_one_mistake(pod):
    found = mistakes(pod.write(racks=TWO, cluster=None, rows=rows("rack")))
    assert found == [(2, "3 machines in lines 2 to 4 have no rack: set the column 'rack'")]


def test_a_single_machine_without_a_rack_is_named(pod):
    header, first, *_others = rows()
    found = mistakes(pod.write(racks=TWO, cluster=None, rows=[header, first, rows("rack")[2]]))
    assert found == [(3, "machine 'm2' has no rack: set the column 'rack'")]
