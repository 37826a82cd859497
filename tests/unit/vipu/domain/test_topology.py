# SPDX-License-Identifier: GPL-3.0-or-later
"""Cables, links and routing: printed figures, and properties of all layouts."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.shared.pod.topology import Cable, CableKind, Layout, Port
from openipu.vipu.domain.model import Cluster, GwRouting, Routing, Topology
from openipu.vipu.domain.routing import gw_routing_for, routing_for

layouts = st.builds(Layout, st.integers(1, 32), st.integers(1, 16), st.sampled_from(Topology))
MESH, TORUS = Topology.MESH, Topology.TORUS


@pytest.mark.parametrize(
    ("layout", "sync", "cabling", "links", "traffic"),
    [
        (Layout(8), 14, 28, 156, 3),
        (Layout(4), 6, 12, 76, 1),
        (Layout(8, topology=TORUS), 14, 32, 160, 4),
        (Layout(2, ilds=2), 4, 12, 72, 2),  # 8 IPU-Link cables and 4 GW-Link cables
        (Layout(16, topology=TORUS), 30, 64, 320, 8),
        (Layout(1), 0, 0, 16, 1),
        (Layout(1, topology=TORUS), 0, 4, 20, 1),
    ],
)
def test_figures(layout: Layout, sync: int, cabling: int, links: int, traffic: int) -> None:
    kinds = Counter(cable.kind for cable in layout.cables())
    assert kinds[CableKind.SYNC_LINK] == sync
    assert len(list(layout.tested_cables())) == cabling
    assert layout.ipu_links() == links
    assert len(list(layout.traffic_windows())) == traffic


@settings(max_examples=150, deadline=None)
@given(layouts)
def test_numbers_of_cables(layout: Layout) -> None:
    n, ilds = layout.machines_per_ild, layout.ilds
    kinds = Counter(cable.kind for cable in layout.cables())
    assert kinds[CableKind.IPU_LINK] == ilds * (4 * n if layout.topology == TORUS else 4 * (n - 1))
    assert kinds[CableKind.SYNC_LINK] == ilds * 2 * (n - 1)
    assert kinds[CableKind.GW_LINK] == (ilds * n if ilds > 1 else 0)
    assert layout.ipu_links() == 16 * n * ilds + kinds[CableKind.IPU_LINK]


@settings(max_examples=150, deadline=None)
@given(layouts)
def test_every_port_has_one_cable_to_its_expected_peer(layout: Layout) -> None:
    n = layout.machines_per_ild
    total = n * layout.ilds
    ends: Counter[tuple[CableKind, Port]] = Counter()
    for cable in layout.cables():
        ends.update([(cable.kind, cable.a), (cable.kind, cable.b)])
        a, b = cable.a, cable.b
        assert 0 <= a.position < total
        assert 0 <= b.position < total
        if cable.kind is CableKind.GW_LINK:
            assert (a.port, b.port) == (1, 2)
            assert a.position % n == b.position % n
            assert (a.position // n + 1) % layout.ilds == b.position // n
        else:
            assert a.position // n == b.position // n  # IPU-Links and Sync-Links stay in their domain
            assert a.port - b.port == 4
            above = a.position + 1 if a.position % n < n - 1 else a.position - n + 1
            assert b.position == above
    assert set(ends.values()) <= {1}
    used = {port.port for (kind, port) in ends if kind is CableKind.IPU_LINK}
    assert used <= set(range(1, 9))


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 32), st.sampled_from(Topology))
def test_only_a_torus_connects_the_last_machine_to_the_first(n: int, topology: Topology) -> None:
    closing = [cable for cable in Layout(n, 1, topology).cables() if cable.b.position < cable.a.position]
    expected = [Cable(CableKind.IPU_LINK, Port(n - 1, up), Port(0, up - 4)) for up in (5, 6, 7, 8)]
    assert closing == (expected if topology is TORUS else [])


@settings(max_examples=150, deadline=None)
@given(layouts)
def test_traffic_reaches_every_machine_and_every_cable(layout: Layout) -> None:
    n = layout.machines_per_ild
    windows = list(layout.traffic_windows())
    if n > 4 and n % 2 == 0:
        assert len(windows) == layout.ilds * (n // 2 if layout.topology == TORUS else n // 2 - 1)
    assert len(set(windows)) == len(windows)
    for window in windows:
        assert len(set(window)) == len(window) == min(4, n)
        assert len({position // n for position in window}) == 1
    assert {position for window in windows for position in window} == set(range(n * layout.ilds))
    neighbours = {pair for window in windows for pair in pairwise(window)}
    for ild in range(layout.ilds):
        for cable in layout.ipu_link_cables(ild):
            pair = cable.a.position, cable.b.position
            assert pair in neighbours or n <= 4  # a small torus is one window, closed or not


@pytest.mark.parametrize(
    ("size", "topology", "whole_ild", "routing"),
    [
        (4, TORUS, False, Routing.DNC),
        (8, MESH, False, Routing.DNC),
        (16, TORUS, True, Routing.DNC),
        (32, MESH, True, Routing.SWNC),
        (32, TORUS, False, Routing.SWNC),
        (64, TORUS, True, Routing.RINGSWNC),
    ],
)
def test_routing_follows_from_size_and_topology(
    size: int, topology: Topology, whole_ild: bool, routing: Routing
) -> None:
    assert routing_for(size, topology, whole_ild) is routing


def test_gw_routing_is_a_ring_between_domains_only() -> None:
    assert gw_routing_for(1) is GwRouting.UNDEFINED
    assert gw_routing_for(2) is GwRouting.RING


def test_layout_of_a_cluster() -> None:
    layout = Layout.of(Cluster("cl0", tuple(f"ag{n}" for n in range(8)), num_ilds=2, topology=TORUS))
    assert layout == Layout(4, 2, TORUS)
    assert layout.ipus == 32
