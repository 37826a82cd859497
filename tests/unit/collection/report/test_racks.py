# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the drawing: machines, cables, ends that leave a drawing, and misplaced cables."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind
from ansible_collections.openipu.pod.plugins.module_utils.report import drawing
from ansible_collections.openipu.pod.plugins.module_utils.report.chassis_ports import ChassisPort
from ansible_collections.openipu.pod.plugins.module_utils.report.machines import HOT_CELSIUS
from ansible_collections.openipu.pod.plugins.module_utils.report.view import view
from hypothesis import given
from hypothesis import strategies as st

from openipu.twin.launch.generate import PodSize
from openipu.vipu.cluster_test.model import Test
from openipu.vipu.domain.model import Topology
from tests import ROOT
from tests.unit.collection.report.report_support import Bench, domains, failing, four_domains, info, passing, run_of

PORTS = [(kind, port) for kind, all in (("IPU-Link", range(1, 9)), ("Sync-Link", range(8))) for port in all]
PORTS += [("GW-Link", 1), ("GW-Link", 2)]


def near(rack: dict[str, Any], state: str) -> list[dict[str, Any]]:
    return [cable for cable in rack["cables"] if cable["state"] == state and not cable["far"]]


def test_parts_of_a_machine_do_not_overlap() -> None:
    places = [drawing.port_at(kind, port) for kind, port in PORTS]
    places += [(x + 10, y + 10) for x, y in drawing.ipus()]
    for x, y in places:
        assert 8 < x < drawing.BOX_WIDTH - 8
        assert 0 < y < drawing.BOX_HEIGHT
        assert sum(abs(x - other_x) < 18 and abs(y - other_y) < 16 for other_x, other_y in places) == 1


@given(st.lists(st.integers(1, 47), unique=True, max_size=16))
def test_machines_are_drawn_at_their_height(units: list[int]) -> None:
    agents = [f"ag{unit}" for unit in sorted(units)]
    rack = drawing.Elevation(agents, sorted(units))
    for lower, upper in zip(sorted(units), sorted(units)[1:], strict=False):
        assert rack.box(f"ag{lower}") - rack.box(f"ag{upper}") == (upper - lower) * drawing.PITCH
    for agent in agents:
        assert 0 < rack.box(agent) < rack.box(agent) + drawing.BOX_HEIGHT < rack.height


@pytest.mark.parametrize("units", [[], [3, None], [4, 4], [5, 4]])
def test_machines_without_valid_heights_are_drawn_in_order(units: list[int | None]) -> None:
    rack = drawing.Elevation(["ag1", "ag2"], units)
    assert rack.box("ag1") - rack.box("ag2") == drawing.PITCH


def test_every_cable_is_drawn_once_inside_the_drawing() -> None:
    (rack,) = view(None, None, passing())["racks"]
    assert len(rack["cables"]) == len({cable["id"] for cable in rack["cables"]}) == 64 + 30
    assert len({cable["path"] for cable in rack["cables"]}) == 64 + 30
    for cable in rack["cables"]:
        x, y = cable["mark"]
        assert 0 < x < drawing.WIDTH
        assert 0 < y < rack["height"]


def test_gw_link_is_drawn_at_both_ends_and_counted_once() -> None:
    page = view(None, None, domains())
    first, second = page["racks"]
    (failed,) = near(first, "failed")
    assert (failed["stub"], first["failed"], second["failed"]) == ("ag04:gw2", 1, 1)
    far = [cable for cable in second["cables"] if cable["state"] == "failed"]
    assert [(cable["id"], cable["far"], cable["stub"]) for cable in far] == [(failed["id"], True, "ag02:gw1")]
    assert (first["open"], page["figures"][1]["text"]) == (True, "1 failed, 15 passed")


def test_misplaced_cables_are_drawn_once() -> None:
    bench = Bench(4, 1, Topology.TORUS)
    bench.wiring.swap(bench.wiring.place("ag02:1"), bench.wiring.place("ag02:3"))
    bench.wiring.move(bench.wiring.place("ag04:5"), bench.wiring.place("ag02:gw1"))
    (rack,) = view(None, None, run_of(bench, (Test.CABLING,)))["racks"]
    assert sum(len(cable["strays"]) for cable in near(rack, "failed")) == 3
    assert rack["failed"] == 3
    elevation = drawing.Elevation(["ag01", "ag02", "ag03", "ag04"])
    for agent, kind, port in (("ag01", "IPU-Link", 1), ("ag02", "GW-Link", 1)):
        x, y = elevation.port(agent, kind, port)
        ring = f"M{x - 10:g} {y:g}a10 10"
        assert any(ring in stray["path"] for cable in rack["cables"] for stray in cable["strays"]), (agent, kind, port)


def test_unmanaged_devices_are_marked() -> None:
    pod = load(str(ROOT / "inventory/pod64/pod.yml"))
    (rack,) = pod.racks
    switches, pdus, servers = (
        (replace(devices[0], managed=False), *devices[1:]) for devices in (rack.switches, rack.pdus, rack.servers)
    )
    given = replace(pod, racks=(replace(rack, switches=switches, pdus=pdus, servers=servers),))
    (drawn,) = view(given, None, None)["racks"]
    marked = [text.split(" · ")[0] for text in drawn["shelves"] if text.endswith(" · unmanaged")]
    assert marked == [switches[0].name, servers[0].name]
    assert [rail["label"] for rail in drawn["pdus"][:2]] == [f"{pdus[0].name} · unmanaged", pdus[1].name]


def test_rack_has_all_its_machines(tmp_path: Path) -> None:
    pod = load(str(PodSize(racks=2, first_octet=10).write(tmp_path)))
    ids = [machine.agent for machine in pod.racks[0].machines]
    reported = {
        "agents": [{"id": id, "host": "10.2.1.1", "state": "Up"} for id in [*ids, "spare"]],
        "clusters": [
            {"id": "lower", "agents": ids[:4], "num_ilds": 1, "topology": "mesh"},
            {"id": "upper", "agents": ids[4:8], "num_ilds": 2, "topology": "mesh"},
        ],
    }
    first, second, other = view(pod, reported, None)["racks"]
    assert [len(rack["boxes"]) for rack in (first, second, other)] == [16, 16, 1]
    assert other["boxes"][0]["agent"] == "spare"
    labels = [cable["label"] for cable in first["cables"] if not cable["far"]]
    assert len(labels) == 12 + 6 + 2 * (4 + 2) + 4, "two clusters in one rack, and the looped GW-Links of one of them"


def test_long_names_are_shortened_in_the_drawing_only() -> None:
    reported = info()
    name = reported["agents"][0]["id"] = reported["clusters"][0]["agents"][0] = "a-name-longer-than-its-place"
    reported["allocations"][0]["agents"][0] = name
    box = view(None, reported, None)["racks"][0]["boxes"][0]
    assert (box["name"], box["agent"]) == ("a-name-longer…", name)


def test_tie_of_versions_is_decided_by_the_first_machine() -> None:
    run = failing()
    failure = next(each for result in run["results"] for each in result["failures"] if each["kind"] == "version")
    failure["versions"] = {id: "1" if number % 2 else "2" for number, id in enumerate(sorted(failure["versions"]))}
    table = view(None, None, run)["machines"]
    column = table["columns"].index("Virm")
    odd = [row["agent"] for row in table["rows"] if row["cells"][column]["odd"]]
    assert odd == [f"ag{number:02}" for number in range(2, 17, 2)], "the first version counts as usual"


@pytest.mark.parametrize("kind", CableKind)
def test_skipped_cable_states_the_cause(kind: CableKind) -> None:
    run = domains()  # two domains, so that there are GW-Links
    for result in run["results"]:
        result.update(ok=False, skipped=True, skipped_because=None, disturbs=["vision"], failures=[])
    racks = view(None, None, run)["racks"]
    cables = [cable for rack in racks for cable in rack["cables"] if cable["label"].startswith(kind)]
    assert cables
    for cable in cables:
        assert cable["state"] == "skipped"
        assert re.search(r"was skipped, because it would disturb partitions\.$", cable["label"])


def test_recreated_cluster_is_drawn_as_tested() -> None:
    """Draw the cables of the tested cluster and the partitions of the current one."""
    page = view(None, info(), domains())
    assert [rack["title"] for rack in page["racks"]] == [
        "Cluster cl0, domain 1",
        "Cluster cl0, domain 2",
        "In no rack and no cluster",
    ]
    assert page["racks"][0]["failed"] == 1
    assert len(page["maps"][0]["rows"]) == 16


def test_failed_cable_opens_both_racks() -> None:
    racks = view(None, None, four_domains())["racks"]
    assert [(rack["failed"], rack["open"]) for rack in racks] == [(1, True), (1, True), (0, False), (0, False)]
    for rack in racks[:2]:
        (stop,) = (cable for cable in rack["cables"] if cable["stop"])
        assert stop["state"] == "failed"
    for rack in racks[2:]:
        assert [cable["stop"] for cable in rack["cables"]].index(True) == 0
        assert rack["summary"] == "26 passed", "12 IPU-Links, 6 Sync-Links, 4 GW-Links to and 4 from others"


def test_gw_link_inside_a_rack_is_one_failure_and_one_tab_stop(tmp_path: Path) -> None:
    pod = load(str(PodSize(racks=1, machines=4, first_octet=10).write(tmp_path)))
    ids = [machine.agent for machine in pod.racks[0].machines]
    run = domains()
    assert run["agents"] == ids
    (rack,) = view(pod, None, run)["racks"]
    assert (rack["failed"], [cable["far"] for cable in rack["cables"] if cable["stop"]]) == (1, [False])


def test_every_drawing_has_a_tab_stop() -> None:
    racks = view(None, None, {**domains(), "results": []})["racks"]
    assert [[cable["stop"] for cable in rack["cables"]].count(True) for rack in racks] == [1, 1]


def test_misplaced_end_is_drawn_in_its_actual_rack() -> None:
    racks = view(None, None, four_domains(swapped=True))["racks"]
    drawn = [
        (number, stray["stub"])
        for number, rack in enumerate(racks, 1)
        for cable in rack["cables"]
        for stray in cable["strays"]
    ]
    assert sorted(drawn) == [(1, "→ ag11:gw2"), (2, ""), (3, "← ag02:gw1")], "the other end leads from ag07 to ag06"
    assert [(rack["failed"], rack["open"]) for rack in racks[:3]] == [(1, True), (2, True), (2, True)]
    for rack in racks:
        for cable in rack["cables"]:
            assert all(0 < stray["y"] < rack["height"] for stray in cable["strays"] if stray["stub"])


def test_allocations_have_bands_next_to_their_machines() -> None:
    reported = info()
    reported["allocations"][1]["agents"].remove("ag12")
    (rack,) = view(None, reported, None)["racks"]
    boxes = {box["agent"]: box["y"] for box in rack["boxes"]}
    assert [(band["name"], band["border"], band["y"], band["y"] + band["height"]) for band in rack["bands"]] == [
        ("team-a", 0, boxes["ag08"], boxes["ag01"] + drawing.BOX_HEIGHT),
        ("team-b", 1, boxes["ag11"], boxes["ag09"] + drawing.BOX_HEIGHT),
        ("team-b", 1, boxes["ag16"], boxes["ag13"] + drawing.BOX_HEIGHT),
    ]


def test_a_misplaced_cable_crosses_no_port_of_other_machines() -> None:
    rack = drawing.Elevation(["ag1", "ag2", "ag3", "ag4"])
    path = rack.stray(ChassisPort("ag1", "IPU-Link", 6), ChassisPort("ag4", "IPU-Link", 3))
    lines = path[path.index("V") :].partition("M")[0]
    columns = [float(x) for x in re.findall(r"H([\d.]+)", lines)]
    ports = [drawing.BOX_LEFT + drawing.port_at(kind, port)[0] for kind, port in PORTS]
    ipus = [drawing.BOX_LEFT + x + 20 for x, _y in drawing.ipus()]
    # The long vertical line is between the IPUs and the ports.
    assert max(ipus) < columns[0] < min(ports) - 8
    heights = [float(y) for y in re.findall(r"V([\d.]+)", lines)]
    for height in heights[:2]:
        assert not any(rack.box(agent) < height < rack.box(agent) + drawing.BOX_HEIGHT for agent in rack._row)


def test_neighbouring_ports_of_a_misplaced_cable_are_joined_directly() -> None:
    rack = drawing.Elevation(["ag1", "ag2"])
    assert "C" in rack.stray(ChassisPort("ag1", "IPU-Link", 6), ChassisPort("ag2", "IPU-Link", 3))


def test_labels_leave_space_for_units_and_ipus() -> None:
    letter = 7  # width of a letter or digit of the labels, rounded up
    label = drawing.BOX_LEFT - 11 - 3 * letter  # U18, as the template places it
    assert label > drawing.BAND_LEFT + drawing.BAND
    reported = info()
    reported["agents"] = [{"id": "ag01", "host": "127.100.100.100", "state": "Down"}, {"id": "ag02", "state": "Up"}]
    reported["ipu_attributes"] = {"ag02": {"0": {"average die temp": "85.5 C"}, "1": {"average die temp": "20 C"}}}
    boxes = {box["agent"]: box for box in view(None, reported, passing())["racks"][0]["boxes"]}
    assert [boxes[agent]["below"] for agent in ("ag01", "ag02")] == ["✕ down", "✕ hot, 85.5 °C"]
    assert (boxes["ag01"]["hot"], boxes["ag02"]["hot"], boxes["ag03"]["hot"]) == (False, True, False)


def test_machines_are_hot_above_the_limit_of_the_alert() -> None:
    limits = yaml.safe_load((ROOT / "roles/monitoring/vars/main.yml").read_text())
    assert HOT_CELSIUS in [each["ipu_celsius"] for each in limits.values() if "ipu_celsius" in each]
