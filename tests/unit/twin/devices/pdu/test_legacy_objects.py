# SPDX-License-Identifier: GPL-3.0-or-later
"""Legacy rPDU tree and IF-MIB of a PDU: one state with the rPDU2 tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest

from openipu.shared.pdu import mib
from openipu.shared.pdu.smi import Column, Oid, Syntax
from openipu.twin.devices.pdu import MODELS, Model, legacy_mib
from openipu.twin.devices.pdu.managed import ManagedPdu
from openipu.twin.devices.pdu.models import VOLTAGE
from openipu.twin.devices.snmp import if_mib
from openipu.twin.devices.snmp.agent import AbsentValue, Agent, Binding
from openipu.twin.devices.snmp.errors import SnmpError, Status
from tests.unit.twin.devices.pdu.pdu_clock import Rack

SWITCHED = [name for name, model in MODELS.items() if model.switched]
BANKED = [model for model in MODELS.values() if model.bank_phases]
# LoadState of rPDU2BankStatusLoadState -> rPDULoadStatusLoadState
STATES = {"lowLoad": "phaseLoadLow", "normal": "phaseLoadNormal"}


def read(agent: Agent, column: Column, row: int = 0) -> Any:
    """Return a value, as text where the column names its values."""
    value = agent.get([column.at(row)])[0].value
    assert not isinstance(value, AbsentValue), column.name
    return column.text(value) if column.names else value


def write(agent: Agent, *values: tuple[Column, int, int | str]) -> None:
    """Write values, by their names where the column has names."""
    agent.set(
        [
            Binding(column.at(row), Syntax.TEXT, value.encode())
            if column.syntax is Syntax.TEXT and isinstance(value, str)
            else Binding(column.at(row), Syntax.INTEGER, column.names.get(str(value), value))
            for column, row, value in values
        ]
    )


def walk(agent: Agent) -> Mapping[Oid, Any]:
    """Return all objects."""
    found: dict[Oid, Any] = {}
    oid: Oid = (0,)
    while (following := agent.get_next([oid])[0]).value is not AbsentValue.END:
        oid = following.oid
        found[oid] = following.value
    return found


@pytest.mark.parametrize("model", MODELS)
def test_the_load_table_has_the_phases_and_then_the_banks(model: str) -> None:
    rack = Rack(model, outlet1=1000.0, outlet8=3900.0, outlet15=230.0)
    agent, status = Agent(ManagedPdu(rack.pdu)), legacy_mib.LOAD_STATUS
    phases, banks = MODELS[model].phases, len(MODELS[model].bank_phases)
    places = [(number, 0) for number in range(1, phases + 1)] + [(0, number) for number in range(1, banks + 1)]
    for row, (phase, bank) in enumerate(places, 1):
        table, number = (mib.PHASE_STATUS, phase) if phase else (mib.BANK_STATUS, bank)
        assert read(agent, status["Index"], row) == row
        assert (read(agent, status["PhaseNumber"], row), read(agent, status["BankNumber"], row)) == (phase, bank)
        assert read(agent, status["Load"], row) == read(agent, table["Current"], number)
        state = read(agent, table["LoadState"], number)
        expected = STATES.get(state, f"phaseLoad{state[0].upper()}{state[1:]}")
        assert read(agent, status["LoadState"], row) == expected
        other = legacy_mib.STATUS_PHASE if phase else legacy_mib.STATUS_BANK
        assert read(agent, other["State"], number) == expected.replace("phase", "phase" if phase else "bank")
    assert read(agent, legacy_mib.LOAD_DEVICE["NumPhases"]) == phases
    assert read(agent, legacy_mib.LOAD_DEVICE["NumBanks"]) == banks
    after = agent.get_next([status["Index"].at(len(places))])[0].oid
    assert after[:-1] == status["Load"].oid


def test_load_states_have_the_bounds_of_the_legacy_mib() -> None:
    """`greater than or equal to the rPDULoadConfigNearOverloadThreshold`, says rPDULoadStatusLoadState."""
    rack = Rack("AP8886", outlet1=13 * 230 * 0.98)
    agent = Agent(ManagedPdu(rack.pdu))
    row = 1 + MODELS["AP8886"].phases
    assert read(agent, legacy_mib.LOAD_STATUS["Load"], row) == 130
    assert read(agent, legacy_mib.LOAD_STATUS["LoadState"], row) == "phaseLoadNearOverload"
    assert read(agent, legacy_mib.LOAD_BANK_CONFIG["Alarm"], 1) == "nearOverCurrentAlarm"
    write(agent, (legacy_mib.LOAD_BANK_CONFIG["OverloadThreshold"], 1, 13))
    assert read(agent, legacy_mib.LOAD_BANK_CONFIG["Alarm"], 1) == "overCurrentAlarm"


@pytest.mark.parametrize(
    ("legacy", "current"),
    [
        ((legacy_mib.IDENT["Name"], 0, "left"), (mib.DEVICE_CONFIG["Name"], 1)),
        (
            (legacy_mib.IDENT["DeviceDisplayOrientation"], 0, "displayReverse"),
            (mib.DEVICE_CONFIG["DisplayOrientation"], 1),
        ),
        ((legacy_mib.LOAD_PHASE_CONFIG["NearOverloadThreshold"], 1, 20), (mib.PHASE_CONFIG, 1)),
        ((legacy_mib.LOAD_PHASE_CONFIG["OverloadThreshold"], 1, 30), (mib.PHASE_CONFIG, 1)),
        ((legacy_mib.LOAD_BANK_CONFIG["LowLoadThreshold"], 2, 3), (mib.BANK_CONFIG, 2)),
        ((legacy_mib.OUTLET_DEVICE["ColdstartDelay"], 0, 9), (mib.DEVICE_CONFIG["ColdstartDelay"], 1)),
        ((legacy_mib.OUTLET_CONFIG["OutletName"], 4, "server4"), (mib.OUTLET_CONFIG["Name"], 4)),
        ((legacy_mib.OUTLET_CONFIG["PowerOnTime"], 4, 7), (mib.OUTLET_CONFIG["PowerOnTime"], 4)),
        ((legacy_mib.OUTLET_CONFIG["PowerOffTime"], 4, -1), (mib.OUTLET_CONFIG["PowerOffTime"], 4)),
        ((legacy_mib.OUTLET_CONFIG["RebootDuration"], 4, 20), (mib.OUTLET_CONFIG["RebootDuration"], 4)),
        (
            (legacy_mib.OUTLET_PHASE["OverloadRestriction"], 1, "restrictOnOverload"),
            (mib.PHASE_CONFIG["OverloadRestriction"], 1),
        ),
        (
            (legacy_mib.OUTLET_BANK["OverloadRestriction"], 2, "restrictOnNearOverload"),
            (mib.BANK_CONFIG["OverloadRestriction"], 2),
        ),
    ],
    ids=lambda pair: pair[0].name if isinstance(pair[0], Column) else "",
)
def test_a_setting_is_the_same_in_both_trees(legacy: tuple[Column, int, int | str], current: tuple[Any, int]) -> None:
    rack = Rack("AP8953")
    agent, (column, row, value) = Agent(ManagedPdu(rack.pdu)), legacy
    other, number = current
    if not isinstance(other, Column):  # the thresholds have a longer name in rPDU2
        other = other[f"{column.name.split('Config')[1].removesuffix('Threshold')}CurrentThreshold"]
    before = read(agent, other, number)
    assert before != value
    write(agent, legacy)
    assert read(agent, column, row) == read(agent, other, number) == value
    write(agent, (other, number, before))
    assert read(agent, column, row) == before


OUTLET_COMMANDS = list(legacy_mib.OUTLET_CONTROL["OutletCommand"].names)
DEVICE_COMMANDS = list(legacy_mib.OUTLET_DEVICE["Command"].names)


def switched_by(model: str, column: Column, row: int, command: str, off: bool) -> list[tuple[float, int, bool]]:
    """Return the log of the outlets after a command, on a PDU whose outlets have different delays."""
    rack = Rack(model)
    for number, outlet in enumerate(rack.pdu.settings.outlets, 1):
        outlet.on_delay, outlet.off_delay, outlet.reboot_duration = number, 2 * number, 5 + number
    if off:
        rack.pdu.outlets.command_all("immediateAllOff")
        rack.switched.clear()
    write(Agent(ManagedPdu(rack.pdu)), (column, row, command))
    rack.clock.advance(1000)
    return rack.switched


@pytest.mark.parametrize("off", [False, True], ids=["on", "off"])
@pytest.mark.parametrize("model", SWITCHED)
def test_commands_have_the_effect_and_delays_of_the_rpdu2_tables(model: str, off: bool) -> None:
    logs = []
    for command in OUTLET_COMMANDS:
        log = switched_by(model, legacy_mib.OUTLET_CONTROL["OutletCommand"], 3, command, off)
        assert log == switched_by(model, mib.OUTLET_CONTROL["Command"], 3, command, off), command
        logs.append(log)
    for command in DEVICE_COMMANDS:
        log = switched_by(model, legacy_mib.OUTLET_DEVICE["Command"], 0, command, off)
        assert log == switched_by(model, mib.DEVICE_CONTROL["Command"], 1, command, off), command
        logs.append(log)
    assert sum(bool(log) for log in logs) >= 6


def test_a_pending_command_is_visible_and_can_be_cancelled_in_the_other_tree() -> None:
    rack = Rack("AP8953")
    rack.pdu.settings.outlets[0].off_delay = 10
    agent, status = Agent(ManagedPdu(rack.pdu)), legacy_mib.OUTLET_STATUS
    write(agent, (mib.OUTLET_CONTROL["Command"], 1, "delayedOff"))
    assert read(agent, status["CommandPending"], 1) == "outletStatusCommandPending"
    assert read(agent, status["OutletState"], 1) == "outletStatusOn"
    write(agent, (legacy_mib.OUTLET_CONTROL["OutletCommand"], 1, "cancelPendingCommand"))
    assert read(agent, mib.OUTLET_STATUS["CommandPending"], 1) == "noCommandPending"
    write(agent, (legacy_mib.OUTLET_CONTROL["OutletCommand"], 1, "immediateOff"))
    assert read(agent, mib.OUTLET_STATUS["State"], 1) == "off"
    assert read(agent, legacy_mib.OUTLET_CONTROL["OutletCommand"], 1) == "immediateOff"


@pytest.mark.parametrize(
    ("column", "row", "value", "status"),
    [
        (legacy_mib.OUTLET_CONTROL["OutletCommand"], 1, 8, Status.WRONG_VALUE),
        (legacy_mib.OUTLET_CONTROL["OutletCommand"], 25, 1, Status.NO_CREATION),
        (legacy_mib.OUTLET_CONFIG["PowerOnTime"], 1, 301, Status.WRONG_VALUE),
        (legacy_mib.OUTLET_STATUS["OutletState"], 1, 2, Status.NOT_WRITABLE),
        (legacy_mib.LOAD_BANK_CONFIG["NearOverloadThreshold"], 1, 17, Status.WRONG_VALUE),
        (legacy_mib.LOAD_BANK_CONFIG["LowLoadThreshold"], 1, 16, Status.INCONSISTENT_VALUE),
        (if_mib.INTERFACES["AdminStatus"], 1, 2, Status.NOT_WRITABLE),
    ],
    ids=lambda value: value.name if isinstance(value, Column) else "",
)
def test_a_rejected_write_changes_nothing(column: Column, row: int, value: int, status: Status) -> None:
    rack = Rack("AP8953")
    before = asdict(rack.pdu.settings)
    with pytest.raises(SnmpError) as rejected:
        write(Agent(ManagedPdu(rack.pdu)), (legacy_mib.IDENT["Name"], 0, "other"), (column, row, value))
    assert (rejected.value.status, rejected.value.index) == (status, 2)
    assert (asdict(rack.pdu.settings), rack.switched) == (before, [])


def test_a_metered_pdu_has_no_switched_outlets() -> None:
    agent = Agent(ManagedPdu(Rack("AP8886").pdu))
    counts = [read(agent, legacy_mib.OUTLET_DEVICE[name]) for name in ("NumCntrlOutlets", "NumTotalOutlets")]
    assert counts == [0, 42]
    for table in (legacy_mib.OUTLET_CONTROL, legacy_mib.OUTLET_STATUS, legacy_mib.OUTLET_CONFIG):
        assert agent.get([table["Index"].at(1)])[0].value is AbsentValue.OBJECT
    with pytest.raises(SnmpError) as rejected:
        write(agent, (legacy_mib.OUTLET_DEVICE["Command"], 0, "immediateAllOff"))
    assert rejected.value.status == Status.NOT_WRITABLE


def test_the_outlets_of_an_ap8886() -> None:
    """Fourteen outlets per phase, 10 C13 and 4 C19, behind two breakers of 16 A each."""
    agent, model = Agent(ManagedPdu(Rack("AP8886").pdu)), MODELS["AP8886"]
    for phase in (1, 2, 3):
        outlets = [outlet for outlet in model.outlets if outlet.phase == phase]
        assert [outlet.number for outlet in outlets] == list(range(14 * phase - 13, 14 * phase + 1))
        assert Counter(outlet.kind for outlet in outlets) == {"C13": 10, "C19": 4}
        assert {outlet.bank for outlet in outlets} == {2 * phase - 1, 2 * phase}
    ident = legacy_mib.IDENT
    assert [read(agent, ident[name]) for name in ("DeviceNumBreakers", "DeviceBreakerRating")] == [6, 16]
    assert read(agent, ident["DeviceOutletLayout"]) == "seqPhToN2xGrouped"
    assert read(agent, legacy_mib.LOAD_DEVICE["MaxPhaseLoad"]) == 0  # "if the unit is banked"


@pytest.mark.parametrize("model", BANKED, ids=lambda model: model.name)
def test_the_breakers_of_a_phase_carry_its_rated_current(model: Model) -> None:
    """Three breakers of 16 A would carry 11 of the 22 kW of an AP8886."""
    for phase in range(1, model.phases + 1):
        assert model.bank_phases.count(phase) * model.bank_amps == model.phase_amps
    assert len(model.bank_phases) * model.bank_amps * VOLTAGE == pytest.approx(model.watts, rel=0.01)


def test_tables_without_rows_have_the_size_zero() -> None:
    found = walk(Agent(ManagedPdu(Rack("AP8953").pdu)))
    for column in legacy_mib.EMPTY_TABLE_SIZES.values():
        assert found[column.at()] == 0
        table = (*column.oid[:-1], column.oid[-1] + 1)
        assert not [oid for oid in found if oid[: len(table)] == table]


def test_snmpv1_has_the_same_objects_without_counter64() -> None:
    pdu = Rack("AP8953").pdu
    wide = {column.at(1) for column in if_mib.INTERFACES_X.values() if column.syntax is Syntax.COUNTER64}
    found, of_v1 = walk(Agent(ManagedPdu(pdu))), walk(Agent(ManagedPdu(pdu), counter64=False))
    assert len(wide) == 6
    assert found.keys() - of_v1.keys() == wide
    assert of_v1 == {oid: value for oid, value in found.items() if oid not in wide}


def test_interface_counters_count_frames() -> None:
    pdu = Rack("AP8886").pdu
    agent, low, high = Agent(ManagedPdu(pdu)), if_mib.INTERFACES, if_mib.INTERFACES_X
    pdu.traffic.received(100)
    pdu.traffic.received(1)  # a frame has at least 64 bytes
    pdu.traffic.sent(1472)
    assert [read(agent, low[name], 1) for name in ("InOctets", "InUcastPkts")] == [146 + 64, 2]
    assert [read(agent, low[name], 1) for name in ("OutOctets", "OutUcastPkts")] == [1518, 1]
    pdu.traffic.in_octets += 2**32
    assert (read(agent, low["InOctets"], 1), read(agent, high["HCInOctets"], 1)) == (210, 2**32 + 210)
    assert len(read(agent, low["PhysAddress"], 1)) == 6


@pytest.mark.parametrize("model", MODELS)
def test_tables_without_rows_have_the_size_0(model: str) -> None:
    agent = Agent(ManagedPdu(Rack(model).pdu))
    sizes = legacy_mib.EMPTY_TABLE_SIZES
    assert [read(agent, size) for size in sizes.values()] == [0, 0, 0, 0]
    sensors = [oid for oid in walk(agent) if oid[: len(mib.RPDU2) + 1] == (*mib.RPDU2, 10)]
    assert sensors == [sizes[f"Sensor{kind}TableSize"].at(0) for kind in ("TempHumidity", "Discrete")]
