# SPDX-License-Identifier: GPL-3.0-or-later
"""Order of the objects of a PDU, and atomic writes."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.shared.pdu import mib
from openipu.shared.pdu.smi import Oid, Syntax
from openipu.twin.devices.pdu.managed import ManagedPdu
from openipu.twin.devices.snmp.agent import AbsentValue, Agent, Binding
from openipu.twin.devices.snmp.errors import SnmpError, Status
from tests.unit.twin.devices.pdu.pdu_clock import Rack

METERED = Agent(ManagedPdu(Rack("AP8886").pdu))
FIRST: Oid = (0,)
THRESHOLDS = [mib.BANK_CONFIG[f"{name}CurrentThreshold"].at(1) for name in ("LowLoad", "NearOverload", "Overload")]


def walk(agent: Agent) -> list[Oid]:
    """Return all names, in order."""
    names = [FIRST]
    while (following := agent.get_next(names[-1:])[0]).value is not AbsentValue.END:
        names.append(following.oid)
    return names[1:]


NAMES = walk(METERED)
# Existing names, their prefixes, their neighbours, and any other names.
AROUND = st.one_of(
    st.sampled_from(NAMES),
    st.tuples(st.sampled_from(NAMES), st.integers(1, 20)).map(lambda pair: pair[0][: pair[1]]),
    st.tuples(st.sampled_from(NAMES), st.integers(0, 2**32 - 1)).map(lambda pair: (*pair[0][:-1], pair[1])),
    st.lists(st.integers(0, 400), min_size=1, max_size=12).map(tuple),
)


def test_names_are_in_ascending_order() -> None:
    assert sorted(set(NAMES)) == NAMES


@given(AROUND)
def test_the_next_name_is_the_least_that_is_greater(oid: Oid) -> None:
    following = METERED.get_next([oid])[0]
    assert following.oid == min((name for name in NAMES if name > oid), default=oid)
    assert (following.value is AbsentValue.END) == (oid >= NAMES[-1])


@given(st.lists(AROUND, min_size=1, max_size=4), st.integers(0, 4), st.integers(0, 30), st.integers(0, 60))
def test_get_bulk_equals_repeated_get_next(oids: list[Oid], non_repeaters: int, repetitions: int, room: int) -> None:
    offered: list[Binding] = []

    def fits(binding: Binding) -> bool:
        offered.append(binding)
        return len(offered) <= room

    found = METERED.get_bulk(oids, non_repeaters, repetitions, fits)
    expected = METERED.get_next(oids[:non_repeaters])
    row = oids[non_repeaters:]
    for _ in range(repetitions if row else 0):
        bindings = METERED.get_next(row)
        expected += bindings
        row = [binding.oid for binding in bindings]
        if all(binding.value is AbsentValue.END for binding in bindings):
            break
    ticking = mib.SYSTEM_GROUP["UpTime"].at()
    assert [each for each in found if each.oid != ticking] == [e for e in expected[:room] if e.oid != ticking]


@given(st.lists(st.tuples(st.sampled_from(THRESHOLDS), st.integers(-1, 18)), min_size=1, max_size=6))
def test_thresholds_stay_in_ascending_order(values: list[tuple[Oid, int]]) -> None:
    pdu = Rack("AP8886").pdu
    agent = Agent(ManagedPdu(pdu))
    before = asdict(pdu.settings)
    desired = {oid: binding.value for oid, binding in zip(THRESHOLDS, agent.get(THRESHOLDS), strict=True)}
    desired |= dict(values)
    low, near, over = desired.values()
    possible = low <= near <= over and all(0 <= value <= 16 for _oid, value in values)
    try:
        agent.set([Binding(oid, Syntax.INTEGER, value) for oid, value in values])
    except SnmpError as rejection:
        assert not possible
        assert 1 <= rejection.index <= len(values)
        assert asdict(pdu.settings) == before
    else:
        assert possible
        assert [binding.value for binding in agent.get(THRESHOLDS)] == [low, near, over]


def test_missing_objects() -> None:
    found = METERED.get([mib.BANK_STATUS["Current"].at(7), mib.OUTLET_STATUS["State"].at(1), mib.RPDU2])
    assert [binding.value for binding in found] == [AbsentValue.INSTANCE, AbsentValue.OBJECT, AbsentValue.OBJECT]


def test_a_command_with_a_rejected_one_is_not_run() -> None:
    pdu = Rack("AP8953").pdu
    with pytest.raises(SnmpError) as rejected:
        Agent(ManagedPdu(pdu)).set(
            [
                Binding(mib.OUTLET_CONTROL["Command"].at(1), Syntax.INTEGER, 2),
                Binding(mib.DEVICE_CONTROL["Command"].at(1), Syntax.INTEGER, 9),
            ]
        )
    assert (rejected.value.status, rejected.value.index) == (Status.WRONG_VALUE, 2)
    assert pdu.outlets.is_on(1)


def test_a_restricted_outlet_rejects_on() -> None:
    rack = Rack("AP8953", outlet2=4000.0)
    agent, command = Agent(ManagedPdu(rack.pdu)), mib.OUTLET_CONTROL["Command"].at(1)
    agent.set(
        [
            Binding(mib.BANK_CONFIG["OverloadRestriction"].at(1), Syntax.INTEGER, 3),
            Binding(command, Syntax.INTEGER, 2),
        ]
    )
    with pytest.raises(SnmpError) as rejected:
        agent.set([Binding(command, Syntax.INTEGER, 1)])
    assert rejected.value.status == Status.INCONSISTENT_VALUE
    assert not rack.pdu.outlets.is_on(1)
