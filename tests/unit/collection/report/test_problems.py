# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices with problems in the report: machines that are down or hot, PDUs that were not read or have alarms."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.report import drawing, pdus
from ansible_collections.openipu.pod.plugins.module_utils.report.page import render
from ansible_collections.openipu.pod.plugins.module_utils.report.view import view

from tests import ROOT
from tests.unit.collection.report.report_support import info, passing, readings
from tests.unit.collection.report.test_page import Reader

ALARM = "Bank 3 is near overload, at 13.4 A."


@pytest.fixture(name="pod")
def _pod() -> Any:
    return load(str(ROOT / "inventory/twin/pod.yml"))


def with_problems() -> dict[str, Any]:
    """Return the state of a controller with one machine that is down, and a hot one."""
    reported = info()
    reported["agents"] = [{"id": "ag01", "host": "127.1", "state": "Down"}, {"id": "ag02", "state": "Up"}]
    reported["ipu_attributes"] = {"ag02": {"0": {"average die temp": "85.5 C"}, "1": {"average die temp": "20 C"}}}
    return reported


def test_devices_with_problems_are_listed(pod: Any) -> None:
    found = view(pod, with_problems(), passing(), readings())
    assert found["problems"] == [
        "Machine ag01 is down.",
        "Machine ag02 is hot: an IPU has 85.5 °C. Check its fans and the air flow.",
        "PDU pdu2: Cannot reach pdu2 at 10.1.3.132:161: no response within 8 s. Check that it is up.",
    ]
    text = Reader(render(pod, with_problems(), passing(), readings())).text
    assert "Devices with problems" in text
    assert all(problem in text for problem in found["problems"])
    assert "Devices with problems" not in Reader(render(pod, info(), passing())).text


def test_rails_of_pdus_with_problems_are_marked(pod: Any) -> None:
    (rack,) = view(pod, info(), passing(), readings())["racks"]
    assert [rail["label"] for rail in rack["pdus"]] == ["pdu1", "✕ pdu2"]
    page = render(pod, info(), passing(), readings())
    assert page.count('class="rail down"') == 1
    (rack,) = view(pod, info(), passing())["racks"]
    assert [rail["label"] for rail in rack["pdus"]] == ["pdu1", "pdu2"]


def test_table_of_pdus(pod: Any) -> None:
    given = {**readings(), "pdu3": {"device": {"power": None}, "alarms": [{"reason": ALARM}]}, "pdu4": {}}
    rows = view(pod, None, None, pdus.checked(given))["pdus"]
    assert [(row["name"], row["state"]) for row in rows] == [
        ("pdu1", "normal"),
        ("pdu2", "no data"),
        ("pdu3", "alarm"),
        ("pdu4", "no data"),
    ]
    assert [row["problems"] for row in rows[2:]] == [[ALARM], ["Cannot read the PDU. Check its address and network."]]
    assert 'id="pdus"' not in render(pod, None, None)


def test_long_names_of_pdus_stay_inside_the_rack(pod: Any) -> None:
    """A letter of the label is at most 7 units wide, and the label ends above the outlets."""
    (rack,) = pod.racks
    for length, managed in itertools.product(range(1, 40), (True, False)):
        pdu = dataclasses.replace(rack.pdus[0], name="p" * length, managed=managed)
        renamed = dataclasses.replace(pod, racks=(dataclasses.replace(rack, pdus=(pdu,)),))
        (rail,) = view(renamed, None, None)["racks"][0]["pdus"]
        assert rail["end"] - 7 * len(rail["label"]) >= 1 + drawing.RAIL
        assert rail["outlets"] > rail["end"]
        assert rail["label"].endswith(" · unmanaged") is not managed
        assert rail["name"] == pdu.name + ("" if managed else " · unmanaged")


def test_readings_that_vary_do_not_change_the_report(pod: Any) -> None:
    given, later = readings(), readings()
    later["pdu1"]["device"]["power"] = given["pdu1"]["device"]["power"] + 1
    warmer = with_problems()
    warmer["ipu_attributes"]["ag02"]["1"]["average die temp"] = "21 C"
    assert render(pod, with_problems(), passing(), given) == render(pod, warmer, passing(), later)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["pdu1"], "it is not a mapping from names of PDUs to results"),
        ({"pdu1": "down"}, "pdu1 is not a mapping"),
        ({"pdu1": {"device": {}, "alarms": [{}]}}, "alarm 1 of pdu1 has no 'reason'"),
    ],
)
def test_invalid_readings_are_rejected(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pdus.checked(value)
