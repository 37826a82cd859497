# SPDX-License-Identifier: GPL-3.0-or-later
"""Headroom of the breakers of a PDU for additional loads."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pdu import headroom, info_task, tables
from ansible_collections.openipu.pod.plugins.module_utils.pdu.headroom import Circuit, Feed, Load
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError
from hypothesis import given
from hypothesis import strategies as st


def metered(phases: tuple[float, ...] = (10.0, 10.0, 10.0), banks: tuple[float, ...] = (5.0,) * 6) -> Feed:
    """Return a feed with three phases of 32 A at 230 V, two banks of 16 A on each, and 22 kW in total."""
    circuits = [Circuit("phase", n, current, 32.0, 230.0) for n, current in enumerate(phases, 1)]
    circuits += [Circuit("bank", n, current, 16.0, 230.0, ((n + 1) // 2,)) for n, current in enumerate(banks, 1)]
    return Feed(sum(phases) * 0.23, 22.0, tuple(circuits))


def names(feed: Feed, *loads: Load, share: float = 1.0) -> list[str]:
    """Return the breakers that the loads would exceed."""
    return [f"{excess.kind} {excess.number}" for excess in headroom.excesses(feed, loads, share)]


def test_a_load_within_the_headroom_exceeds_nothing() -> None:
    assert names(metered(), Load(2.5, bank=1)) == []
    assert names(metered(), Load(15.0)) == []


def test_a_load_on_a_bank_counts_in_its_phase() -> None:
    assert names(metered(), Load(2.6, bank=3)) == ["bank 3"]
    assert names(metered(phases=(10.0, 22.0, 10.0)), Load(2.5, bank=3)) == ["phase 2"]
    assert names(metered(phases=(10.0, 22.0, 10.0)), Load(2.5, bank=2)) == []


def test_loads_add_up() -> None:
    assert names(metered(), Load(1.5, bank=1), Load(1.5, bank=1)) == ["bank 1"]
    assert names(metered(), Load(1.5, bank=1), Load(1.5, bank=2)) == []


def test_a_load_on_a_phase_is_shared_by_its_banks() -> None:
    assert names(metered(), Load(5.0, phase=1)) == []
    assert names(metered(banks=(12.0, 5.0, 5.0, 5.0, 5.0, 5.0)), Load(3.0, phase=1)) == ["bank 1"]


def test_the_rating_of_the_whole_pdu() -> None:
    feed = metered()
    small = Feed(feed.power, 10.0, feed.circuits)
    assert names(small, Load(3.2)) == ["device None"]
    assert names(small, Load(3.0)) == []


def test_a_share_of_the_breaker_is_kept_free() -> None:
    assert names(metered(), Load(2.0, bank=1)) == []
    assert names(metered(), Load(2.0, bank=1), share=0.8) == ["bank 1"]


def test_a_load_between_two_phases_counts_in_both() -> None:
    circuits = (
        Circuit("phase", 1, 20.0, 30.0, 208.0),
        Circuit("phase", 2, 0.0, 30.0, 208.0),
        Circuit("bank", 1, 0.0, 20.0, 208.0, (1, 2)),
    )
    assert names(Feed(None, None, circuits), Load(2.5, bank=1)) == ["phase 1"]


def test_an_overloaded_breaker_accepts_no_load() -> None:
    assert names(metered(banks=(16.5, 5.0, 5.0, 5.0, 5.0, 5.0)), Load(0.1, bank=1)) == ["bank 1"]
    assert names(metered(banks=(16.5, 5.0, 5.0, 5.0, 5.0, 5.0)), Load(0.1, bank=2)) == []


def test_unreported_values_are_not_checked() -> None:
    feed = Feed(None, None, (Circuit("phase", 1, None, 32.0), Circuit("bank", 1, 5.0, None, phases=(1,))))
    assert names(feed, Load(100.0)) == []


def test_the_message_has_all_numbers() -> None:
    loads = [Load(3.0, bank=3)]
    found = headroom.excesses(metered(), loads)
    assert headroom.excess_message("pdu1", loads, found) == (
        "Cannot add 3 kW to pdu1: bank 3 would carry 18 A of at most 16 A (5 now and 13 more). "
        "Reduce the load, or move it to another PDU."
    )


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (Load(1.0, bank=7), "Cannot add a load to bank 7: the PDU does not have it; it has banks 1 to 6."),
        (Load(1.0, phase=4), "Cannot add a load to phase 4: the PDU does not have it; it has phases 1 to 3."),
        (Load(-1.0), "Cannot add a load of -1 kW: it must not be negative."),
    ],
)
def test_an_invalid_load_is_rejected(load: Load, message: str) -> None:
    with pytest.raises(UserError) as error:
        headroom.excesses(metered(), [load])
    assert error.value.message == message


CURRENTS = st.floats(0, 16).map(lambda value: round(value, 1))


@given(
    banks=st.lists(CURRENTS, min_size=6, max_size=6),
    loads=st.lists(
        st.builds(Load, st.floats(0, 8), bank=st.sampled_from(range(1, 7)))
        | st.builds(Load, st.floats(0, 8), phase=st.sampled_from((1, 2, 3)))
        | st.builds(Load, st.floats(0, 20)),
        max_size=4,
    ),
)
def test_every_load_counts_exactly_once(banks: list[float], loads: list[Load]) -> None:
    phases = tuple(banks[n] + banks[n + 1] for n in (0, 2, 4))
    feed = metered(phases, tuple(banks))
    added = headroom.additional(feed, loads)
    total = sum(load.power for load in loads)
    for kind in ("phase", "bank"):
        amperes = sum(current for (of, _number), current in added.items() if of == kind)
        assert amperes * 0.23 == pytest.approx(total)
    exceeded = {(excess.kind, excess.number) for excess in headroom.excesses(feed, loads)}
    for circuit in feed.circuits:
        room = circuit.headroom()
        assert room is not None
        more = added[circuit.kind, circuit.number]
        if more <= room:
            assert (circuit.kind, circuit.number) not in exceeded
        if more > room + 0.1:
            assert (circuit.kind, circuit.number) in exceeded


@given(present=st.floats(0, 30), expected=st.floats(0, 30))
def test_the_remaining_load(present: float, expected: float) -> None:
    load = headroom.remaining_load(Feed(present, None, ()), expected)
    assert load.power == pytest.approx(max(0.0, expected - present))


def test_unreported_power_is_calculated_from_the_phases() -> None:
    feed = metered()
    assert headroom.remaining_load(Feed(None, 22.0, feed.circuits), 10.0).power == pytest.approx(10.0 - 6.9)


def test_a_feed_from_readings() -> None:
    readings = {
        "pdu": {"phase_breaker": 32, "power_rating": 22.0},
        "device": {"power": 6.9},
        "phases": [{"number": 1, "current": 10.0, "voltage": 231}],
        "banks": [{"number": 1, "current": 5.0, "breaker": 16, "wiring": "seqPhase1ToNeutral"}, {"number": 2}],
    }
    assert info_task.feed(readings) == Feed(
        6.9,
        22.0,
        (
            Circuit("phase", 1, 10.0, 32, 231),
            Circuit("bank", 1, 5.0, 16, 231, (1,)),
            Circuit("bank", 2, None, None),
        ),
    )
    assert set(tables.PHASES_OF) == set(tables.BANK_LOADS.columns["wiring"].names)


def test_the_messages_of_alarms() -> None:
    readings = {
        "device": {"power": 21.9, "load_state": "near_overload", "supply_alarm": "alarm"},
        "phases": [{"number": 2, "current": 33.1, "load_state": "overload"}, {"number": 3, "load_state": "normal"}],
        "banks": [{"number": 4, "current": 0.1, "load_state": "low_load"}],
    }
    assert [alarm["reason"] for alarm in info_task.alarms(readings)] == [
        "The whole PDU is near overload, at 21.9 kW.",
        "Phase 2 is in overload, at 33.1 A.",
        "Bank 4 is below its low_load, at 0.1 A.",
        "A power supply of the PDU has failed. Repair or replace it.",
    ]
