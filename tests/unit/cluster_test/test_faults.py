# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is wrong with a rack: the test that owns it finds it, and blames no cable that is right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind, Layout
from hypothesis import given, settings
from hypothesis import strategies as st
from rack_support import Bench, contract

from openipu.twin.wiring import CHASSIS_PORTS, Place
from openipu.vipu.cluster_test.plan import DEFAULT_TESTS, DEPENDS, End, FailureKind, Test, Verdict
from openipu.vipu.cluster_test.readings import ends
from openipu.vipu.model import Topology

IPU, GW, SYNC = CableKind.IPU_LINK, CableKind.GW_LINK, CableKind.SYNC_LINK
COMPONENTS = ("GWSW", "Virm")
Pair = tuple[Place, Place]


def place(end: End | None) -> Place | None:
    return end and Place(end.agent, end.kind, end.port)


def blamed(verdict: Verdict, *, untested: bool = False) -> set[Pair]:
    """The cables that a test finds wrong; or those it could not test, for want of an answer."""
    return {
        (place(failure.a), place(failure.b))  # type: ignore[misc]
        for failure in verdict.failures
        if failure.a and (failure.kind is FailureKind.AGENT_UNREACHABLE) is untested
    }


@dataclass
class Spoiler:
    """Spoils a rack, and writes down which expected cables it laid hands on, and whose they are to find."""

    bench: Bench
    draw: st.DataObject
    touched: set[Pair] = field(default_factory=set)
    owned: list[tuple[Test, set[Pair]]] = field(default_factory=list)
    degraded: set[Pair] = field(default_factory=set)  # touched, and still where they belong
    silent: set[str] = field(default_factory=set)
    links: set[tuple[str, str]] = field(default_factory=set)
    noise: set[tuple[str, str]] = field(default_factory=set)
    noisy: set[Pair] = field(default_factory=set)
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

    def mismatched(self) -> set[str]:
        """Components that machines which answer tell different versions of."""
        told = [self.bench.hardware(id).versions for id in self.bench.cluster.agents if id not in self.silent]
        return {component for component in COMPONENTS if len({versions[component] for versions in told}) > 1}

    def heard(self, found: set[tuple[str, str]]) -> set[tuple[str, str]]:
        """Of links inside of machines, those of machines that answer."""
        return {(agent, link) for agent, link in found if agent not in self.silent}

    def owner(self, kind: CableKind) -> Test:
        return Test.SYNC_LINK if kind is SYNC else Test.CABLING

    def spoil(self) -> None:
        """One fault more; a cable that is in its place can have several."""
        machine = ["version", "pfc", "internal", "noise", "slow", "stop", "hang"]
        untouched = [pair for pair in self.expected if pair not in self.touched]
        in_place = untouched + [pair for pair in self.expected if pair in self.degraded]
        kinds = [
            *machine,
            *(["move", "swap"] if untouched else []),
            *(["unplug", "dead", "errors"] if in_place else []),
        ]
        kind = self.draw.draw(st.sampled_from(kinds))
        if kind in machine:
            self._machine(kind, self.draw.draw(st.sampled_from(self.bench.cluster.agents)))
            return
        pair = self.draw.draw(st.sampled_from(untouched if kind in ("move", "swap") else in_place))
        end = pair[self.draw.draw(st.integers(0, 1))]
        self._cable(kind, pair, end, untouched)

    def _machine(self, kind: str, agent: str) -> None:
        hardware = self.bench.hardware(agent)
        if kind == "version":
            component = self.draw.draw(st.sampled_from(COMPONENTS))
            hardware.versions[component] = "0.0.1"
        elif kind == "pfc":
            hardware.pfc = {"eth1": (0, 2)}
            self.pfc.add(agent)
        elif kind == "slow":
            hardware.slowness = 0.001
        elif kind == "stop":
            hardware.powered = False
            self.silent.add(agent)
        elif kind == "hang":
            hardware.hang()
            self.silent.add(agent)
        elif kind == "noise":
            name = f"internal{self.draw.draw(st.integers(0, 15))}"
            hardware.noisy_links[name] = 301
            self.noise.add((agent, name))
        else:
            name = f"internal{self.draw.draw(st.integers(0, 15))}"
            hardware.broken_links.add(name)
            self.links.add((agent, name))

    def _cable(self, kind: str, pair: Pair, end: Place, untouched: list[Pair]) -> None:
        wiring = self.bench.wiring
        touched = {pair}
        if kind == "unplug":
            wiring.unplug(end)
            self.degraded.discard(pair)
            self.owned.append((self.owner(end.kind), touched))
        elif kind == "dead":
            wiring.degrade(end, dead=True)
            self.degraded.add(pair)
            owner = {IPU: Test.IPU_LINK, GW: Test.GW_LINK, SYNC: Test.SYNC_LINK}[end.kind]
            self.owned.append((owner, touched))
        elif kind == "errors" and end.kind is IPU:
            errors = self.draw.draw(st.sampled_from([1, 300, 301, 100_000]))
            wiring.degrade(end, corrected_errors=errors)
            self.degraded.add(pair)
            self.noisy = {each for each in self.noisy if each != pair} | ({pair} if errors > 300 else set())
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

    def of_silent(pair: Pair) -> bool:
        return not spoiler.silent.isdisjoint(end.agent for end in pair)

    for test, pairs in [*spoiler.owned, (Test.TRAFFIC, spoiler.noisy)]:
        found = blamed(alone[test])
        assert {pair for pair in pairs if not of_silent(pair)} <= found, (test, pairs)
    for test, verdict in alone.items():
        assert {pair for pair in blamed(verdict) if not of_silent(pair)} <= spoiler.touched
        # A cable of a machine that does not answer is never blamed, and always told of where it was to be tested.
        assert not any(map(of_silent, blamed(verdict)))
        assert all(map(of_silent, blamed(verdict, untested=True)))
        assert verdict.ok == (not verdict.failures)
        unheard = {f.agent for f in verdict.failures if f.kind is FailureKind.AGENT_UNREACHABLE and not f.a}
        assert unheard == (set() if test is Test.GW_LINK and ilds == 1 else spoiler.silent), test
    inside = {(f.agent, f.link) for f in alone[Test.IPU_LINK].failures if f.link}
    assert inside == spoiler.heard(spoiler.links)
    inside = {(f.agent, f.link) for f in alone[Test.TRAFFIC].failures if f.link}
    assert inside == spoiler.heard(spoiler.links | spoiler.noise)
    mismatched = {f.component for f in alone[Test.VERSION].failures if f.component}
    assert mismatched == spoiler.mismatched()
    classes = {f.agent for f in alone[Test.PFC_SETTINGS].failures if f.kind is FailureKind.PFC_CLASSES}
    assert classes == spoiler.pfc - spoiler.silent
    if not spoiler.silent:
        assert alone[Test.VERSION].passed == alone[Test.VERSION].total - len(mismatched)
    for failure in alone[Test.CABLING].failures:
        if failure.kind is FailureKind.AGENT_UNREACHABLE:
            continue
        assert failure.a
        assert failure.b
        for end, found in ((failure.a, failure.found), (failure.b, failure.found_b)):
            here = place(end)
            assert here
            cable = bench.wiring.at(here)
            there = cable.other(here) if cable else None
            # What is told of the other end is where it is, if anybody there tells.
            known = there and there.agent not in spoiler.silent and bench.wiring.at(there) is cable
            assert place(found) == (there if known else None)

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


def test_an_agent_that_speaks_of_unknown_ports_is_told_and_the_others_are_tested() -> None:
    bench = Bench(3)

    async def newer(stub: Any, request: Any, timeout: float) -> Any:
        return contract.ReadCablesReply(ports=[contract.CablePort(kind=99, port=1, serial="x")])

    bench.answer("ag02", "ReadCables", newer)
    verdict = bench.run([Test.CABLING])[Test.CABLING]
    told = [failure for failure in verdict.failures if not failure.a]
    assert [(failure.kind, failure.agent) for failure in told] == [(FailureKind.AGENT_UNREACHABLE, "ag02")]
    assert "a kind 99 that is not known" in told[0].reason
    assert blamed(verdict) == set()
