# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of a PDU as objects, and the variables to write from actual to desired objects."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib, tables
from ansible_collections.openipu.pod.plugins.module_utils.pdu.options import CONFIG_OPTIONS
from ansible_collections.openipu.pod.plugins.module_utils.pdu.resources import (
    FAMILIES,
    ROWS,
    desired_objects,
    parse_config,
    writes,
)
from ansible_collections.openipu.pod.plugins.module_utils.pdu.session import Oid, Value
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError, plan
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.collection.pdu.pdu_values import RECEIVERS, ap8886, switched

HOST = "pdu:161"
PDU = f"apc (AP8886 at {HOST})"
SWITCHED = f"apc (AP8959 at {HOST})"


def planned_writes(values: dict[Oid, Value], **config: Any) -> list[tuple[str, Value]]:
    """Return the planned writes: description and value."""
    checked = ArgumentSpecValidator(CONFIG_OPTIONS).validate(config)
    assert not checked.error_messages
    actual = parse_config(values, ROWS, HOST)
    objects = desired_objects(checked.validated_parameters, actual)
    steps = [step for f in FAMILIES for step in plan(f, objects[f.plural], actual.objects[f.plural])]
    found = writes(steps, actual)
    assert all(values[write.oid] != write.value for write in found if not write.command)
    return [(write.description, write.value) for write in found]


def test_the_gathered_configuration() -> None:
    actual = parse_config(ap8886(), ROWS, HOST)
    assert actual.name == PDU
    assert actual.identity["power_rating"] == 22.0
    found = actual.gathered()
    assert found["near_overload"] == 17.6
    assert found["phases"][2] == {"number": 3, "low_load": 0, "near_overload": 26, "overload": 32}
    assert [item["number"] for item in found["banks"]] == [1, 2, 3, 4, 5, 6]
    assert found["trap_receivers"] == [{"address": "10.1.3.101", "enabled": True}]
    assert "outlets" not in found
    assert "s3cret" not in str(found)


def test_unsupported_fields_are_omitted() -> None:
    found = parse_config(switched(), ROWS, HOST).gathered()
    assert "overload" not in found
    assert found["banks"] == []
    assert found["outlets"][0] == {
        "number": 1,
        "name": "Outlet 1",
        "on_delay": 0,
        "off_delay": -1,
        "reboot_duration": 5,
        "state": "on",
    }


@pytest.mark.parametrize("rating", [22000, 220])
def test_a_rating_is_read_in_either_unit(rating: int) -> None:
    values = ap8886(instead={tables.IDENTITY["power_rating"].at(1): rating})
    assert parse_config(values, (), HOST).identity["power_rating"] == 22.0


def test_only_different_values_are_written() -> None:
    assert planned_writes(
        ap8886(),
        name="pdu1",
        location="Unknown",
        overload=21.5,
        banks=[{"number": 2, "near_overload": 13, "overload": 15}],
    ) == [("overload 21.5 kW", 215), ("name 'pdu1'", "pdu1"), ("overload 15 A of bank 2", 15)]


def test_equal_values_are_not_written() -> None:
    assert planned_writes(ap8886(), name="apc", near_overload=17.6, phases=[{"overload": 32}]) == []


def test_an_item_without_number_applies_to_all_others() -> None:
    found = planned_writes(ap8886(), banks=[{"overload": 15}, {"number": 6, "overload": 14}])
    assert dict(found) == {
        "overload 14 A of bank 6": 14,
        **{f"overload 15 A of bank {bank}": 15 for bank in range(1, 6)},
    }


def test_a_new_trap_receiver_uses_a_free_row() -> None:
    found = planned_writes(ap8886(), trap_receivers=[{"address": "10.1.3.9", "community": "traps"}])
    assert [description for description, _value in found] == [
        "address '10.1.3.9' of trap receiver 10.1.3.9",
        "community of trap receiver 10.1.3.9",
        "enabled true of trap receiver 10.1.3.9",
    ]


def test_a_community_is_changed_only_if_the_old_one_is_readable() -> None:
    receivers = [{"address": "10.1.3.101", "community": "another"}]
    assert planned_writes(ap8886(), trap_receivers=receivers) == [("community of trap receiver 10.1.3.101", "another")]
    masked = {mib.TRAP_RECEIVERS["communityString"].at(1): "*******"}
    assert planned_writes(ap8886(instead=masked), trap_receivers=receivers) == []


def test_outlets_are_named_before_they_are_switched() -> None:
    found = planned_writes(
        switched(),
        outlets=[
            {"number": 4, "state": "off", "name": "server2"},
            {"number": 5, "state": "on"},
            {"number": 6, "command": "reboot", "reboot_duration": 10},
        ],
    )
    assert found == [
        ("name 'server2' of outlet 4", "server2"),
        ("reboot_duration 10 s of outlet 6", 10),
        ("state off of outlet 4", 2),
        ("command reboot of outlet 6", 3),
    ]


ORDERED = st.lists(st.integers(0, 32), min_size=3, max_size=3).map(sorted)


@given(before=ORDERED, after=ORDERED)
def test_thresholds_are_ascending_after_each_write(before: list[int], after: list[int]) -> None:
    """An agent may compare each variable of a request with its current values."""
    names = ("low_load", "near_overload", "overload")
    columns = [tables.PHASES.columns[name] for name in names]
    values = ap8886(instead={column.at(1): value for column, value in zip(columns, before, strict=True)})
    actual = parse_config(values, ROWS, HOST)
    objects = desired_objects({"phases": [{"number": 1, **dict(zip(names, after, strict=True))}]}, actual)
    steps = plan(FAMILIES[1], objects["phases"], actual.objects["phases"])
    now: dict[Oid, Any] = {column.at(1): values[column.at(1)] for column in columns}
    for write in writes(steps, actual):
        now[write.oid] = write.value
        assert list(now.values()) == sorted(now.values())
    assert list(now.values()) == after


@given(before=ORDERED, after=ORDERED)
def test_thresholds_of_the_whole_pdu_are_ascending_after_each_write(before: list[int], after: list[int]) -> None:
    names = ("low_load", "near_overload", "overload")
    columns = [tables.SETTINGS[name] for name in names]
    values = ap8886(instead={column.at(1): value for column, value in zip(columns, before, strict=True)})
    actual = parse_config(values, ROWS, HOST)
    objects = desired_objects(dict(zip(names, (value / 10 for value in after), strict=True)), actual)
    steps = plan(FAMILIES[0], objects["settings"], actual.objects["settings"])
    now: dict[Oid, Any] = {column.at(1): values[column.at(1)] for column in columns}
    for write in writes(steps, actual):
        now[write.oid] = write.value
        assert list(now.values()) == sorted(now.values())
    assert list(now.values()) == after


REJECTED: list[tuple[dict[Oid, Value], dict[str, Any], str]] = [
    (
        ap8886(),
        {"outlets": [{"number": 1, "state": "off"}]},
        f"Cannot set outlets on {PDU}: this model cannot switch its outlets. Omit outlets, or use a switched model, "
        "like an AP89xx.",
    ),
    (
        ap8886(),
        {"banks": [{"number": 7, "overload": 10}]},
        f"Cannot set bank 7 on {PDU}: it has 1 to 6. Correct the number, or remove it.",
    ),
    (
        switched(),
        {"outlets": [{"number": 9}]},
        f"Cannot set outlet 9 on {SWITCHED}: it has 1 to 8. Correct the number, or remove it.",
    ),
    (
        switched(),
        {"banks": [{"number": 1}]},
        f"Cannot set bank 1 on {SWITCHED}: it has none. Correct the number, or remove it.",
    ),
    (switched(), {"overload": 7.0}, f"Cannot set overload on {SWITCHED}: the model does not have it. Omit it."),
    (
        ap8886(),
        {"phases": [{"number": 2, "near_overload": 12, "overload": 10}]},
        f"Cannot set the thresholds of phase 2 of {PDU} to low_load 0 A, near_overload 12 A, overload 10 A: "
        "they must be in ascending order.",
    ),
    (
        ap8886(),
        {"banks": [{"overload": 20}]},
        f"Cannot set overload of bank 1 of {PDU} to 20 A: the rating is 16 A. Set at most the rating.",
    ),
    (
        ap8886(),
        {"overload": 23.0},
        f"Cannot set overload of {PDU} to 23 kW: the rating is 22 kW. Set at most the rating.",
    ),
    (
        ap8886(),
        {"low_load": 1.25},
        "Cannot set low_load to 1.25 kW: a PDU stores multiples of 0.1 kW. Round the value.",
    ),
    (ap8886(), {"low_load": -1.0}, "Cannot set low_load to -1 kW: the minimum is 0 kW. Raise the value."),
    (
        ap8886(),
        {"name": "pdü"},
        "Cannot set name to 'pdü': a PDU stores printable ASCII only. Use other characters.",
    ),
    (
        ap8886(),
        {"banks": [{"overload": 15}, {"low_load": 1}]},
        "Cannot set banks: two items have no number, so both apply to all of them. Remove one.",
    ),
    (
        ap8886(),
        {"trap_receivers": [{"address": "monitor"}]},
        "Cannot use the address of a trap receiver 'monitor': it is not an IPv4 address. Write one like 10.1.3.9.",
    ),
    (
        ap8886(),
        {"trap_receivers": [{"address": "10.1.3.9"}]},
        f"Cannot add trap receiver 10.1.3.9 to {PDU}: it needs an address and a community. Set both.",
    ),
    (
        ap8886(),
        {"trap_receivers": [{"address": f"10.1.4.{n}", "community": "traps"} for n in range(RECEIVERS)]},
        f"Cannot add trap receiver 10.1.4.5 to {PDU}: all 6 receivers are in use. Remove one in the web "
        "interface of the PDU.",
    ),
]


@pytest.mark.parametrize(("values", "config", "message"), REJECTED, ids=[message[:40] for *_, message in REJECTED])
def test_an_invalid_configuration_is_rejected(values: dict[Oid, Value], config: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        planned_writes(values, **config)
    assert error.value.message == message


def test_a_bank_listed_twice_is_rejected() -> None:
    with pytest.raises(UserError, match="Cannot plan bank '2': it is listed twice"):
        planned_writes(ap8886(), banks=[{"number": 2, "overload": 14}, {"number": 2, "overload": 15}])


def test_a_device_that_is_no_pdu_is_rejected() -> None:
    with pytest.raises(UserError, match=r"^Cannot use sw1:161 as a PDU: it has no rPDU2 tables\."):
        parse_config({column.at(): None for column in tables.SIZES.values()}, (), "sw1:161")


def test_several_pdus_behind_one_port_are_rejected() -> None:
    with pytest.raises(UserError, match="its agent serves 2 PDUs"):
        parse_config(ap8886(instead={tables.SIZES["units"].at(): 2}), (), HOST)
