# SPDX-License-Identifier: GPL-3.0-or-later
"""Random faults of a rack: the responsible test finds each fault and blames no good cable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.shared.pod.topology import CableKind, Layout
from openipu.twin.cables.wiring import CHASSIS_PORTS, Place
from openipu.vipu.cluster_test.model import End, FailureKind, Test, Verdict
from openipu.vipu.cluster_test.readings import ends
from openipu.vipu.cluster_test.selection import DEFAULT_TESTS, DEPENDS
from openipu.vipu.domain.model import Topology
from tests.unit.vipu.cluster_test.rack_support import Bench, contract

IPU, GW, SYNC = CableKind.IPU_LINK, CableKind.GW_LINK, CableKind.SYNC_LINK
COMPONENTS = ("GWSW", "Virm")
Pair = tuple[Place, Place]


def place(end: End | None) -> Place | None:
    return end and Place(end.agent, end.kind, end.port)


def failed_cables(verdict: Verdict, *, unreachable: bool = False) -> set[Pair]:
    """Return the cables that a test finds wrong, or those that it could not test without a response."""
    return {
        (place(failure.a), place(failure.b))  # type: ignore[misc]
        for failure in verdict.failures
        if failure.a and (failure.kind is FailureKind.AGENT_UNREACHABLE) is unreachable
    }


@dataclass
class FaultInjector:
    """Injects faults into a rack, and records the affected cables and the test that must find each."""

    bench: Bench
    draw: st.DataObject
    touched: set[Pair] = field(default_factory=set)
    owned: list[tuple[Test, set[Pair]]] = field(default_factory=list)
    degraded: set[Pair] = field(default_factory=set)  # touched, but still in their ports
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
        """Return components with different versions on the machines that respond."""
        reported = [self.bench.hardware(id).versions for id in self.bench.cluster.agents if id not in self.silent]
        return {component for component in COMPONENTS if len({versions[component] for versions in reported}) > 1}

    def responding(self, found: set[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the internal links of machines that respond."""
        return {(agent, link) for agent, link in found if agent not in self.silent}

    def owner(self, kind: CableKind) -> Test:
        return Test.SYNC_LINK if kind is SYNC else Test.CABLING

    def inject(self) -> None:
        """Inject another fault; a cable in its ports can have several."""
        machine = ["version", "pfc", "internal", "noise", "slow", "stop", "hang"]
        intact = [pair for pair in self.expected if pair not in self.touched]
        in_place = intact + [pair for pair in self.expected if pair in self.degraded]
        kinds = [
            *machine,
            *(["move", "swap"] if intact else []),
            *(["unplug", "dead", "errors"] if in_place else []),
        ]
        kind = self.draw.draw(st.sampled_from(kinds))
        if kind in machine:
            self._machine(kind, self.draw.draw(st.sampled_from(self.bench.cluster.agents)))
            return
        pair = self.draw.draw(st.sampled_from(intact if kind in ("move", "swap") else in_place))
        end = pair[self.draw.draw(st.integers(0, 1))]
        self._cable(kind, pair, end, intact)

    def _machine(self, kind: str, agent: str) -> None:
        hardware = self.bench.hardware(agent)
        if kind == "version":
            component = self.draw.draw(st.sampled_from(COMPONENTS))
            hardware.versions[component] = "0.0.1"
        elif kind == "pfc":
            hardware.pfc = {"eth1": (0, 2)}
            self.pfc.add(agent)
        elif kind == "slow":
            hardware.response_delay = 0.001
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

    def _cable(self, kind: str, pair: Pair, end: Place, intact: list[Pair]) -> None:
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
            candidates = [p for p in intact if p != pair and p[0].kind is end.kind]
            if not candidates:
                return
            other = self.draw.draw(st.sampled_from(candidates))
            wiring.swap(end, other[self.draw.draw(st.integers(0, 1))])
            touched |= {other}
            self.owned += [(self.owner(end.kind), {pair}), (self.owner(end.kind), {other})]
        elif kind == "move":
            free = [
                target
                for agent in self.bench.cluster.agents
                for port in CHASSIS_PORTS[end.kind]
                if (target := Place(agent, end.kind, port)) not in self.of and not wiring.at(target)
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
    injector = FaultInjector(bench, data)
    for _ in range(count):
        injector.inject()
    single_verdicts = {test: bench.run([test])[test] for test in Test}

    def has_silent_end(pair: Pair) -> bool:
        return not injector.silent.isdisjoint(end.agent for end in pair)

    for test, pairs in [*injector.owned, (Test.TRAFFIC, injector.noisy)]:
        found = failed_cables(single_verdicts[test])
        assert {pair for pair in pairs if not has_silent_end(pair)} <= found, (test, pairs)
    for test, verdict in single_verdicts.items():
        assert {pair for pair in failed_cables(verdict) if not has_silent_end(pair)} <= injector.touched
        # A cable of a machine that does not respond never counts as failed, but is always listed as untested.
        assert not any(map(has_silent_end, failed_cables(verdict)))
        assert all(map(has_silent_end, failed_cables(verdict, unreachable=True)))
        assert verdict.ok == (not verdict.failures)
        unresponsive = {f.agent for f in verdict.failures if f.kind is FailureKind.AGENT_UNREACHABLE and not f.a}
        assert unresponsive == (set() if test is Test.GW_LINK and ilds == 1 else injector.silent), test
    inside = {(f.agent, f.link) for f in single_verdicts[Test.IPU_LINK].failures if f.link}
    assert inside == injector.responding(injector.links)
    inside = {(f.agent, f.link) for f in single_verdicts[Test.TRAFFIC].failures if f.link}
    assert inside == injector.responding(injector.links | injector.noise)
    mismatched = {f.component for f in single_verdicts[Test.VERSION].failures if f.component}
    assert mismatched == injector.mismatched()
    classes = {f.agent for f in single_verdicts[Test.PFC_SETTINGS].failures if f.kind is FailureKind.PFC_CLASSES}
    assert classes == injector.pfc - injector.silent
    if not injector.silent:
        assert single_verdicts[Test.VERSION].passed == single_verdicts[Test.VERSION].total - len(mismatched)
    for failure in single_verdicts[Test.CABLING].failures:
        if failure.kind is FailureKind.AGENT_UNREACHABLE:
            continue
        assert failure.a
        assert failure.b
        for end, found in ((failure.a, failure.found), (failure.b, failure.found_b)):
            end_place = place(end)
            assert end_place
            cable = bench.wiring.at(end_place)
            other_place = cable.other_end(end_place) if cable else None
            # The other end of a cable is reported where it is, if the machine there responds.
            known = other_place and other_place.agent not in injector.silent and bench.wiring.at(other_place) is cable
            assert place(found) == (other_place if known else None)
        misplaced = failure.found or failure.found_b
        assert failure.kind is (FailureKind.WRONG_PORT if misplaced else FailureKind.NO_CABLE)

    combined_verdicts = bench.run(DEFAULT_TESTS)
    for test, verdict in combined_verdicts.items():
        failed = [combined_verdicts[needed] for needed in DEPENDS.get(test, ()) if not combined_verdicts[needed].ok]
        if failed:
            cause = failed[0].skipped_because or failed[0].test
            assert (verdict.skipped_because, verdict.passed, verdict.total) == (cause, 0, 0)
            assert not combined_verdicts[cause].skipped
            assert combined_verdicts[cause].failures
        else:
            assert failed_cables(verdict) == failed_cables(single_verdicts[test])


@pytest.mark.parametrize("topology", Topology)
def test_a_misplaced_sync_cable_is_reported_with_its_location(topology: Topology) -> None:
    bench = Bench(4, 1, topology)
    wiring = bench.wiring
    wiring.swap(wiring.place("ag02:sync2"), wiring.place("ag04:sync3"))
    failures = bench.run([Test.SYNC_LINK])[Test.SYNC_LINK].failures
    assert [(failure.kind, str(failure.a), str(failure.found)) for failure in failures] == [
        (FailureKind.NO_SYNC, "ag01:sync6", "ag04:sync3"),
        (FailureKind.NO_SYNC, "ag03:sync7", "ag02:sync2"),
    ]
    assert failures[0].reason.startswith(
        "The sync pulses of ag01:sync6 did not arrive at ag02:sync2 but at ag04:sync3; "
    )


def test_gw_links_pass_sync_and_are_listed_apart() -> None:
    bench = Bench(2, 2)
    bench.wiring.degrade(bench.wiring.place("ag01:gw1"), dead=True)
    verdict = bench.run([Test.SYNC_LINK])[Test.SYNC_LINK]
    assert (verdict.passed, verdict.total, verdict.ok) == (4, 4, False)
    assert verdict.lines == ("Failed Sync Links:", "ag01:gw1 <--> ag03:gw2")


def test_an_agent_that_reports_unknown_ports_does_not_block_others() -> None:
    bench = Bench(3)

    async def newer(stub: Any, request: Any, timeout: float) -> Any:
        return contract.ReadCablesReply(ports=[contract.CablePort(kind=99, port=1, serial="x")])

    bench.set_reply("ag02", "ReadCables", newer)
    verdict = bench.run([Test.CABLING])[Test.CABLING]
    reported = [failure for failure in verdict.failures if not failure.a]
    assert [(failure.kind, failure.agent) for failure in reported] == [(FailureKind.AGENT_UNREACHABLE, "ag02")]
    assert "ports of unknown kind 99" in reported[0].reason
    assert failed_cables(verdict) == set()
