# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of dashboards: texts, colours and layout follow the model that Grafana imports."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from ansible_collections.openipu.pod.plugins.plugin_utils import grafana

from tools.dashboards.data import colour, marks, scale, series, shown, value_text
from tools.dashboards.drawing import picture

SVG = "{http://www.w3.org/2000/svg}"
DEFINITION = {
    "uid": "u",
    "title": "Machines",
    "rows": [
        {
            "title": "Status",
            "panels": [
                {
                    "title": "Agent",
                    "kind": "stat",
                    "names": {0: "down", 1: "up"},
                    "lowest": 1,
                    "queries": {"{{host}}": "up"},
                },
                {"title": "Use", "kind": "bargauge", "unit": "percentunit", "max": 1, "queries": {"{{host}}": "used"}},
                {"title": "Power", "unit": "watt", "stack": True, "queries": {"{{host}}": "power"}},
                {
                    "title": "State",
                    "kind": "state-timeline",
                    "names": {0: "down", 1: "up"},
                    "lowest": 1,
                    "queries": {"{{host}}": "up"},
                },
                {"title": "Alerts", "kind": "table", "width": 24, "queries": {"": "ALERTS"}},
            ],
        },
        {"title": "Hosts", "panels": [{"title": "CPU", "queries": {"{{host}}": "cpu"}}]},
    ],
}


def drawn(values: dict[str, list[dict[str, Any]]]) -> ElementTree.Element:
    """Return the picture of DEFINITION with the results of its queries."""
    model = grafana.dashboard(DEFINITION)
    data = {
        panel["id"]: [
            each for target in panel.get("targets", ()) for each in series(target, values.get(target["expr"], []))
        ]
        for panel in model["panels"]
    }
    return ElementTree.fromstring(picture(model, data, (0.0, 60.0)))


def texts(root: ElementTree.Element) -> list[str]:
    return [str(each.text) for each in root.iter(f"{SVG}text")]


def result(host: str, *values: float) -> dict[str, Any]:
    return {
        "metric": {"__name__": "m", "host": host},
        "values": [[10.0 * n, str(each)] for n, each in enumerate(values)],
    }


def test_panels_show_the_last_values_in_their_colours() -> None:
    root = drawn({"up": [result("ag01", 1, 0), result("ag02", 1, 1)], "used": [result("ag01", 0.25)]})
    fills = {each.text: each.get("style", "") for each in root.iter(f"{SVG}text")}
    assert fills["down"] == "fill: #e02f44"
    assert fills["up"] == "fill: #56a64b"
    assert "25 %" in fills
    segments = [each.get("fill") for each in root.iter(f"{SVG}rect") if each.get("fill") in ("#e02f44", "#56a64b")]
    assert segments.count("#e02f44") == 1, "ag01 is down at the end"


def test_stacked_lines_end_at_the_sum() -> None:
    root = drawn({"power": [result("ag01", 100, 100), result("ag02", 100, 300)]})
    paths = [str(each.get("d")) for each in root.iter(f"{SVG}path") if "L" in str(each.get("d"))]
    ends = sorted(float(path.rpartition(",")[2]) for path in paths)
    assert len(ends) == 2
    assert "400 W" in texts(root)
    assert ends[0] < ends[1], "the sum is above the first series"


def test_lines_and_states_have_the_gaps_of_their_data() -> None:
    found = result("ag01", 1, 1, 1, 1, 1, 1)
    del found["values"][2:4]
    root = drawn({"up": [found], "cpu": [found]})
    [line] = (each.attrib["d"] for each in root.iter(f"{SVG}path") if "L" in each.attrib["d"])
    assert line.count("M") == 2
    assert len([each for each in root.iter(f"{SVG}rect") if each.get("fill") == "#56a64b"]) == 2


def test_panels_have_the_same_axis_of_time() -> None:
    late = {"metric": {"host": "ag01"}, "values": [[30.0, "1"], [60.0, "1"]]}
    root = drawn({"power": [result("ag01", *range(7))], "up": [late]})
    assert [text for text in texts(root) if ":" in text] == ["0:00", "0:30", "1:00"] * 2
    [line] = (each.attrib["d"] for each in root.iter(f"{SVG}path") if "L" in each.attrib["d"])
    [state] = (each.attrib for each in root.iter(f"{SVG}rect") if each.get("fill") == "#56a64b")
    middle = {each.text: float(each.attrib["x"]) for each in root.iter(f"{SVG}text")}["0:30"]
    assert float(state["x"]) == pytest.approx(middle, abs=0.1)
    assert line.count("L") == 6


def test_rows_without_data_are_omitted_and_panels_say_so() -> None:
    root = drawn({"up": [result("ag01", 1)]})
    found = texts(root)
    assert "Status" in found
    assert "Hosts" not in found
    assert found.count("No data") == 3


def test_a_table_shows_labels_and_how_many_lines_do_not_fit() -> None:
    root = drawn({"ALERTS": [{"metric": {"alertname": f"A{n:02}", "job": "j"}, "value": [0, "1"]} for n in range(40)]})
    found = texts(root)
    assert {"alertname", "A00"} <= set(found)
    assert "job" not in found
    assert any(text.endswith(" more") for text in found)


def test_bars_show_how_many_series_do_not_fit() -> None:
    hosts = [f"ag{number:02}" for number in range(40)]
    found = texts(drawn({"used": [result(host, 0.25) for host in hosts]}))
    [more] = (text for text in found if text.endswith(" more"))
    assert len(set(found) & set(hosts)) + int(more.split()[-2]) == len(hosts)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.5, "percentunit", "50 %"),
        (4.18e-7, "percentunit", "0.0000418 %"),
        (1.33e9, "hertz", "1.33 GHz"),
        (6900, "watt", "6.9 kW"),
        (230, "volt", "230 V"),
        (4.5, "amp", "4.5 A"),
        (500, "watth", "500 Wh"),
        (85.25, "celsius", "85.2 °C"),
        (2**31, "bytes", "2 GiB"),
        (37_000, "bytes", "36.1 KiB"),
        (1000, "bytes", "1000 B"),
        (1_200_000, "bps", "1.2 Mb/s"),
        (31, "percent", "31 %"),
        (999.6, "watt", "1 kW"),
        (0.0021, "s", "2.1 ms"),
        (0.9996, "s", "1 s"),
        (0, "s", "0 s"),
        (12, "short", "12"),
    ],
)
def test_values_have_units(value: float, unit: str, text: str) -> None:
    assert value_text(value, unit) == text


def test_colours_and_names_of_values() -> None:
    panels = {panel["title"]: panel for panel in grafana.dashboard(DEFINITION)["panels"]}
    field = panels["Agent"]["fieldConfig"]["defaults"]
    assert [(colour(value, field), shown(value, field)) for value in (0, 1)] == [("red", "down"), ("green", "up")]


def test_states_that_are_not_bad_differ_in_colour() -> None:
    panel = {"title": "Leader", "kind": "state-timeline", "names": {0: "follows", 1: "leads"}, "queries": {"n": "x"}}
    model = grafana.dashboard({"uid": "u", "title": "T", "rows": [{"title": "R", "panels": [panel]}]})
    field = model["panels"][1]["fieldConfig"]["defaults"]
    found = [(colour(value, field), shown(value, field)) for value in (0, 1)]
    assert found == [("blue", "follows"), ("green", "leads")]


def test_bars_leave_space_for_names_and_values() -> None:
    root = drawn({"used": [result("allocation team-a", 0.0000286)]})
    assert "allocation team-a" in texts(root)
    value = next(each for each in root.iter(f"{SVG}text") if each.text == "0.00286 %")
    end = float(value.attrib["x"])
    start = end - 6 * len("0.00286 %")
    bars = [float(each.attrib["x"]) + float(each.attrib["width"]) for each in root.iter(f"{SVG}rect")]
    assert not [each for each in bars if start < each < end]


def test_marks_of_bytes_are_multiples_of_a_binary_unit() -> None:
    assert [value_text(mark, "bytes") for mark in marks(0, 37_000, "bytes")] == [
        "0 B",
        "10 KiB",
        "20 KiB",
        "30 KiB",
        "40 KiB",
    ]


@pytest.mark.parametrize(("lowest", "highest"), [(0, 1), (0, 0), (23.4, 91), (-3, 1e9), (0.001, 0.0011), (5, 5)])
def test_scales_include_the_range(lowest: float, highest: float) -> None:
    marks = scale(lowest, highest)
    assert marks[0] <= lowest
    assert marks[-1] >= highest
    assert 3 <= len(marks) <= 7
    assert len({value_text(mark, "short") for mark in marks}) == len(marks)
