# SPDX-License-Identifier: GPL-3.0-or-later
"""What agents answer as objects, and the variables between what is there and what is wanted."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib, tables
from ansible_collections.openipu.pod.plugins.module_utils.pdu.client import Oid, Value
from ansible_collections.openipu.pod.plugins.module_utils.pdu.options import CONFIG_OPTIONS
from ansible_collections.openipu.pod.plugins.module_utils.pdu.resources import FAMILIES, ROWS, read, wanted, writes
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import SentenceError, plan
from hypothesis import given
from hypothesis import strategies as st
from pdu_values import RECEIVERS, ap8886, switched

HOST = "pdu:161"
PDU = f"apc (AP8886 at {HOST})"
SWITCHED = f"apc (AP8959 at {HOST})"


def asked(values: dict[Oid, Value], **config: Any) -> list[tuple[str, Value]]:
    """What would be written, by the words of sentences."""
    checked = ArgumentSpecValidator(CONFIG_OPTIONS).validate(config)
    assert not checked.error_messages
    there = read(values, ROWS, HOST)
    objects = wanted(checked.validated_parameters, there)
    steps = [step for f in FAMILIES for step in plan(f, objects[f.plural], there.objects[f.plural])]
    found = writes(steps, there)
    assert all(values[write.oid] != write.value for write in found if not write.command)
    return [(write.what, write.value) for write in found]


def test_what_is_configured() -> None:
    there = read(ap8886(), ROWS, HOST)
    assert there.name == PDU
    assert there.identity["power_rating"] == 22.0
    found = there.gathered()
    assert found["near_overload"] == 17.6
    assert found["phases"][2] == {"number": 3, "low_load": 0, "near_overload": 26, "overload": 32}
    assert [item["number"] for item in found["banks"]] == [1, 2, 3, 4, 5, 6]
    assert found["trap_receivers"] == [{"address": "10.1.3.101", "enabled": True}]
    assert "outlets" not in found
    assert "s3cret" not in str(found)


def test_what_a_model_does_not_have_is_left_out() -> None:
    found = read(switched(), ROWS, HOST).gathered()
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
    assert read(values, (), HOST).identity["power_rating"] == 22.0


def test_only_what_differs_is_written() -> None:
    assert asked(
        ap8886(),
        name="pdu1",
        location="Unknown",
        overload=21.5,
        banks=[{"number": 2, "near_overload": 13, "overload": 15}],
    ) == [("overload 21.5 kW", 215), ("name 'pdu1'", "pdu1"), ("overload 15 A of bank 2", 15)]


def test_what_is_there_already_is_not_written() -> None:
    assert asked(ap8886(), name="apc", near_overload=17.6, phases=[{"overload": 32}]) == []


def test_an_item_without_number_is_for_all_others() -> None:
    found = asked(ap8886(), banks=[{"overload": 15}, {"number": 6, "overload": 14}])
    assert dict(found) == {
        "overload 14 A of bank 6": 14,
        **{f"overload 15 A of bank {bank}": 15 for bank in range(1, 6)},
    }


def test_a_new_trap_receiver_takes_a_free_row() -> None:
    found = asked(ap8886(), trap_receivers=[{"address": "10.1.3.9", "community": "traps"}])
    assert [what for what, _value in found] == [
        "address '10.1.3.9' of trap receiver 10.1.3.9",
        "community of trap receiver 10.1.3.9",
        "enabled true of trap receiver 10.1.3.9",
    ]


def test_a_trap_receiver_gets_another_community_only_when_the_old_one_is_told() -> None:
    receivers = [{"address": "10.1.3.101", "community": "another"}]
    assert asked(ap8886(), trap_receivers=receivers) == [("community of trap receiver 10.1.3.101", "another")]
    masked = {mib.TRAP_RECEIVERS["communityString"].at(1): "*******"}
    assert asked(ap8886(instead=masked), trap_receivers=receivers) == []


def test_outlets_are_named_before_they_are_switched() -> None:
    found = asked(
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
        ("turning off of outlet 4", 2),
        ("reboot of outlet 6", 3),
    ]


ORDERED = st.lists(st.integers(0, 32), min_size=3, max_size=3).map(sorted)


@given(before=ORDERED, after=ORDERED)
def test_thresholds_rise_after_each_write(before: list[int], after: list[int]) -> None:
    """An agent may compare each variable of a request with what it holds at that moment."""
    names = ("low_load", "near_overload", "overload")
    columns = [tables.PHASES.columns[name] for name in names]
    values = ap8886(instead={column.at(1): value for column, value in zip(columns, before, strict=True)})
    there = read(values, ROWS, HOST)
    objects = wanted({"phases": [{"number": 1, **dict(zip(names, after, strict=True))}]}, there)
    steps = plan(FAMILIES[1], objects["phases"], there.objects["phases"])
    now: dict[Oid, Any] = {column.at(1): values[column.at(1)] for column in columns}
    for write in writes(steps, there):
        now[write.oid] = write.value
        assert list(now.values()) == sorted(now.values())
    assert list(now.values()) == after


@given(before=ORDERED, after=ORDERED)
def test_thresholds_of_all_of_it_rise_too(before: list[int], after: list[int]) -> None:
    names = ("low_load", "near_overload", "overload")
    columns = [tables.SETTINGS[name] for name in names]
    values = ap8886(instead={column.at(1): value for column, value in zip(columns, before, strict=True)})
    there = read(values, ROWS, HOST)
    objects = wanted(dict(zip(names, (value / 10 for value in after), strict=True)), there)
    steps = plan(FAMILIES[0], objects["settings"], there.objects["settings"])
    now: dict[Oid, Any] = {column.at(1): values[column.at(1)] for column in columns}
    for write in writes(steps, there):
        now[write.oid] = write.value
        assert list(now.values()) == sorted(now.values())
    assert list(now.values()) == after


REFUSED: list[tuple[dict[Oid, Value], dict[str, Any], str]] = [
    (
        ap8886(),
        {"outlets": [{"number": 1, "state": "off"}]},
        f"{PDU} meters its outlets and cannot switch them: leave outlets out, or use a switched model, like an AP89xx.",
    ),
    (
        ap8886(),
        {"banks": [{"number": 7, "overload": 10}]},
        f"{PDU} has no bank 7: it has 1 to 6.",
    ),
    (switched(), {"outlets": [{"number": 9}]}, f"{SWITCHED} has no outlet 9: it has 1 to 8."),
    (switched(), {"banks": [{"number": 1}]}, f"{SWITCHED} has no bank 1: it has none."),
    (switched(), {"overload": 7.0}, f"{SWITCHED} has no overload of its own: leave it out."),
    (
        ap8886(),
        {"phases": [{"number": 2, "near_overload": 12, "overload": 10}]},
        f"The thresholds of phase 2 of {PDU} would be low_load 0 A, near_overload 12 A, overload 10 A: "
        "they have to rise in this order.",
    ),
    (
        ap8886(),
        {"banks": [{"overload": 20}]},
        f"The overload of bank 1 of {PDU} would be 20 A, and it is made for 16 A: give no more than that.",
    ),
    (
        ap8886(),
        {"overload": 23.0},
        f"The overload of {PDU} would be 23 kW, and it is made for 22 kW: give no more than that.",
    ),
    (ap8886(), {"low_load": 1.25}, "The low_load of 1.25 kW is finer than a PDU can hold: give it in steps of 0.1 kW."),
    (ap8886(), {"low_load": -1.0}, "The low_load cannot be -1 kW: give 0 or more."),
    (
        ap8886(),
        {"name": "pdü"},
        "The name 'pdü' has a character that no PDU can hold: use plain ASCII.",
    ),
    (
        ap8886(),
        {"banks": [{"overload": 15}, {"low_load": 1}]},
        "Two items of banks have no number, and so are both for all of them: leave one out.",
    ),
    (
        ap8886(),
        {"trap_receivers": [{"address": "monitor"}]},
        "The address of a trap receiver 'monitor' is no IPv4 address: give one like 10.1.3.9.",
    ),
    (
        ap8886(),
        {"trap_receivers": [{"address": "10.1.3.9"}]},
        f"The new trap receiver 10.1.3.9 of {PDU} needs an address and a community: give both.",
    ),
    (
        ap8886(),
        {"trap_receivers": [{"address": f"10.1.4.{n}", "community": "traps"} for n in range(RECEIVERS)]},
        f"{PDU} has no room for the trap receiver 10.1.4.5: all 6 are set, so clear one of them in its web page.",
    ),
]


@pytest.mark.parametrize(("values", "config", "sentence"), REFUSED, ids=[sentence[:40] for *_, sentence in REFUSED])
def test_what_cannot_be_is_refused(values: dict[Oid, Value], config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SentenceError) as error:
        asked(values, **config)
    assert error.value.sentence == sentence


def test_a_bank_that_stands_twice_is_refused() -> None:
    with pytest.raises(SentenceError, match="Bank '2' stands twice"):
        asked(ap8886(), banks=[{"number": 2, "overload": 14}, {"number": 2, "overload": 15}])


def test_what_is_no_pdu_is_refused() -> None:
    with pytest.raises(SentenceError, match=r"^sw1:161 has no rPDU2 tables"):
        read({column.at(): None for column in tables.SIZES.values()}, (), "sw1:161")


def test_several_pdus_behind_one_port_are_refused() -> None:
    with pytest.raises(SentenceError, match="speaks for 2 PDUs"):
        read(ap8886(instead={tables.SIZES["units"].at(): 2}), (), HOST)
