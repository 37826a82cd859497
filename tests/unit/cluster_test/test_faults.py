# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is wrong with a rack: the test that owns it finds it, and blames no cable that is right."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind, Layout
from hypothesis import given, settings
from hypothesis import strategies as st
from rack_support import Bench

from openipu.twin.wiring import CHASSIS_PORTS, Place
from openipu.vipu.cluster_test.plan import DEFAULT_TESTS, DEPENDS, End, FailureKind, Test, Verdict
from openipu.vipu.cluster_test.readings import ends
from openipu.vipu.model import Topology

IPU, GW, SYNC = CableKind.IPU_LINK, CableKind.GW_LINK, CableKind.SYNC_LINK
COMPONENTS = ("GWSW", "Virm")
Pair = tuple[Place, Place]


def place(end: End | None) -> Place | None:
    return end and Place(end.agent, end.kind, end.port)


def blamed(verdict: Verdict) -> set[Pair]:
    return {(place(failure.a), place(failure.b)) for failure in verdict.failures if failure.a}  # type: ignore[misc]


@dataclass
class Spoiler:
    """Spoils a rack, and writes down which expected cables it laid hands on, and whose they are to find."""

    bench: Bench
    draw: st.DataObject
    touched: set[Pair] = field(default_factory=set)
    owned: list[tuple[Test, set[Pair]]] = field(default_factory=list)
    links: set[tuple[str, str]] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)
    pfc: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.expected: list[Pair] = []
        self.of: dict[Place, Pair] = {}
        for cable in Layout.of(self.bench.cluster).cables():
            a, b = (place(end) for end in ends(self.bench.cluster, cable))
            assert a
            assert b
            self.expected.append((a, b))
            self.of[a] = self.of[b] = (a, b)

    def owner(self, kind: CableKind) -> Test:
        return Test.SYNC_LINK if kind is SYNC else Test.CABLING

    def spoil(self) -> None:
        kinds = ["version", "pfc", "internal"]
        untouched = [pair for pair in self.expected if pair not in self.touched]
        if untouched:
            kinds += ["unplug", "move", "swap", "dead", "errors"]
        kind = self.draw.draw(st.sampled_from(kinds))
        if kind in ("version", "pfc", "internal"):
            agent = self.draw.draw(st.sampled_from(self.bench.cluster.agents))
            self._machine(kind, agent)
            return
        pair = self.draw.draw(st.sampled_from(untouched))
        end = pair[self.draw.draw(st.integers(0, 1))]
        self._cable(kind, pair, end, untouched)

    def _machine(self, kind: str, agent: str) -> None:
        hardware = self.bench.hardware(agent)
        if kind == "version":
            component = self.draw.draw(st.sampled_from(COMPONENTS))
            hardware.versions[component] = "0.0.1"
            told = {self.bench.hardware(id).versions[component] for id in self.bench.cluster.agents}
            self.versions = (self.versions | {component}) if len(told) > 1 else self.versions - {component}
        elif kind == "pfc":
            hardware.pfc = {"eth1": (0, 2)}
            self.pfc.add(agent)
        else:
            name = f"internal{self.draw.draw(st.integers(0, 15))}"
            hardware.broken_links.add(name)
            self.links.add((agent, name))

    def _cable(self, kind: str, pair: Pair, end: Place, untouched: list[Pair]) -> None:
        wiring = self.bench.wiring
        touched = {pair}
        if kind == "unplug":
            wiring.unplug(end)
            self.owned.append((self.owner(end.kind), touched))
        elif kind == "dead":
            wiring.degrade(end, dead=True)
            owner = {IPU: Test.IPU_LINK, GW: Test.GW_LINK, SYNC: Test.SYNC_LINK}[end.kind]
            self.owned.append((owner, touched))
        elif kind == "errors" and end.kind is IPU:
            errors = self.draw.draw(st.sampled_from([1, 300, 301, 100_000]))
            wiring.degrade(end, corrected_errors=errors)
            if errors > 300:
                self.owned.append((Test.TRAFFIC, touched))
        elif kind == "swap":
            mates = [p for p in untouched if p != pair and p[0].kind is end.kind]
            if not mates:
                return
            other = self.draw.draw(st.sampled_from(mates))
            wiring.swap(end, other[self.draw.draw(st.integers(0, 1))])
            touched |= {other}
            self.owned += [(self.owner(end.kind), {pair}), (self.owner(end.kind), {other})]
        elif kind == "move":
            free = [
                there
                for agent in self.bench.cluster.agents
                for port in CHASSIS_PORTS[end.kind]
                if (there := Place(agent, end.kind, port)) not in self.of and not wiring.at(there)
            ]
            if not free:
                return
            wiring.move(end, self.draw.draw(st.sampled_from(free)))
            self.owned.append((self.owner(end.kind), touched))
        self.touched |= touched


@settings(max_examples=500, deadline=None)
@given(st.integers(1, 9), st.integers(1, 3), st.sampled_from(Topology), st.integers(0, 6), st.data())
def test_every_fault_is_found_and_nothing_else(
    machines: int, ilds: int, topology: Topology, count: int, data: st.DataObject
) -> None:
    bench = Bench(machines, ilds, topology)
    spoiler = Spoiler(bench, data)
    for _ in range(count):
        spoiler.spoil()
    alone = {test: bench.run([test])[test] for test in Test}

    for test, pairs in spoiler.owned:
        assert pairs <= blamed(alone[test]), (test, pairs)
    for verdict in alone.values():
        assert blamed(verdict) <= spoiler.touched
        assert verdict.ok == (not verdict.failures)
    inside = {(f.agent, f.link) for f in alone[Test.IPU_LINK].failures if f.link}
    assert inside == spoiler.links
    assert {failure.component for failure in alone[Test.VERSION].failures} == spoiler.versions
    assert {failure.agent for failure in alone[Test.PFC_SETTINGS].failures} == spoiler.pfc
    assert alone[Test.VERSION].passed == alone[Test.VERSION].total - len(spoiler.versions)
    for failure in alone[Test.CABLING].failures:
        assert failure.a
        assert failure.b
        for end, found in ((failure.a, failure.found), (failure.b, failure.found_b)):
            here = place(end)
            assert here
            cable = bench.wiring.at(here)
            there = cable.other(here) if cable else None
            # What is told of the other end is where it is.
            assert place(found) == (there if there and bench.wiring.at(there) is cable else None)

    together = bench.run(DEFAULT_TESTS)
    for test, verdict in together.items():
        failed = [together[needed] for needed in DEPENDS.get(test, ()) if not together[needed].ok]
        if failed:
            cause = failed[0].skipped_because or failed[0].test
            assert (verdict.skipped_because, verdict.passed, verdict.total) == (cause, 0, 0)
            assert not together[cause].skipped
            assert together[cause].failures
        else:
            assert blamed(verdict) == blamed(alone[test])


@pytest.mark.parametrize("topology", Topology)
def test_a_misplaced_sync_cable_is_told_with_where_it_is(topology: Topology) -> None:
    bench = Bench(4, 1, topology)
    wiring = bench.wiring
    wiring.swap(wiring.place("ag02:sync2"), wiring.place("ag04:sync3"))
    failures = bench.run([Test.SYNC_LINK])[Test.SYNC_LINK].failures
    assert [(failure.kind, str(failure.a), str(failure.found)) for failure in failures] == [
        (FailureKind.NO_SYNC, "ag01 Sync-Link port 6", "ag04 Sync-Link port 3"),
        (FailureKind.NO_SYNC, "ag03 Sync-Link port 7", "ag02 Sync-Link port 2"),
    ]
    assert failures[0].reason.startswith(
        "The pulses of ag01 Sync-Link port 6 did not arrive at ag02 Sync-Link port 2, but at ag04 Sync-Link port 3; "
    )


def test_gw_links_pass_sync_and_are_listed_apart() -> None:
    bench = Bench(2, 2)
    bench.wiring.degrade(bench.wiring.place("ag01:gw1"), dead=True)
    verdict = bench.run([Test.SYNC_LINK])[Test.SYNC_LINK]
    assert (verdict.passed, verdict.total, verdict.ok) == (4, 4, False)
    assert verdict.lines == ("Failed Sync Links:", "ag01:1 <--> 2:ag03 [GW-Link]")
