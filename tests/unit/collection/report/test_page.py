# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the page: content, escaping and size."""

from __future__ import annotations

import copy
import functools
import html.parser
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.report.owners import FILLS, fill
from ansible_collections.openipu.pod.plugins.module_utils.report.page import render
from ansible_collections.openipu.pod.plugins.module_utils.report.view import view
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.twin.launch.generate import PodSize
from tests import ROOT
from tests.unit.collection.report.report_support import AGENTS, failing, info, passing


class Reader(html.parser.HTMLParser):
    """Parser of elements with their attributes, and of all text outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += data

    def cables(self, state: str) -> list[str]:
        return [
            str(attributes["aria-label"])
            for tag, attributes in self.elements
            if tag == "g" and state in str(attributes.get("class")).split() and "aria-label" in attributes
        ]


@functools.cache
def pod() -> Any:
    return load(str(ROOT / "inventory/twin/pod.yml"))


def test_passed_rack() -> None:
    page = Reader(render(pod(), info(), passing()))
    assert (len(page.cables("passed")), page.cables("failed")) == (64 + 30, [])
    for words in ("All tests passed", "tor1", "mgmt1", "server1", "pdu1", "U3", "U18", "vision", "team-b"):
        assert words in page.text, words
    assert "What to do" not in page.text


def test_a_run_does_not_pass_the_other_clusters() -> None:
    more = [{"id": f"cl{number}", "agents": [f"other{number}"], "num_ilds": 1} for number in range(1, 7)]
    found = {**info(), "clusters": [*info()["clusters"], *more[:1]]}
    page = Reader(render(pod(), found, passing()))
    assert "Cluster cl0 passed. The report has no test of cl1" in page.text
    assert "All tests passed" not in page.text
    page = Reader(render(pod(), {**found, "clusters": [*info()["clusters"], *more]}, passing()))
    assert "no test of cl1, cl2, cl3, cl4, 2 more" in page.text


def test_the_last_run_of_each_cluster_counts() -> None:
    first, second = passing(), failing()
    second["cluster"] = "cl1"
    for run in (first, second):
        run["agents"] = [f"{run['cluster']}-{agent}" for agent in run["agents"]]
    for result in second["results"]:
        result["failures"] = []
    broken = {**copy.deepcopy(first), "ok": False, "ended": first["ended"] - 100}
    broken["results"][0]["ok"] = False
    found = view(None, None, [second, first, broken])
    assert [(rack["title"], rack["failed"]) for rack in found["racks"]] == [("Cluster cl0", 0), ("Cluster cl1", 0)]
    states = [{cable["state"] for cable in rack["cables"]} for rack in found["racks"]]
    assert states[0] == {"passed"} and "untested" not in states[1]
    assert found["verdict"] == {"state": "failed", "text": "2 tests of cluster cl1 failed"}
    assert found["run"].startswith("Cluster cl0, tested on ") and ". Cluster cl1, tested on " in found["run"]
    names = [test["test"] for test in found["tests"]]
    assert names[0] == f"{first['results'][0]['test']} of cl0" and len(names) == len(set(names))


def test_clusters_that_all_passed_are_named_beside_one_without_a_test() -> None:
    second = passing()
    second["cluster"] = "cl1"
    second["agents"] = [f"other-{agent}" for agent in second["agents"]]
    runs = [passing(), second]
    assert view(None, None, runs)["verdict"]["text"] == "All tests passed"
    third = {"id": "cl2", "agents": ["ag99"], "num_ilds": 1}
    found = view(None, {**info(), "clusters": [third]}, runs)["verdict"]
    assert found == {"state": "untested", "text": "Clusters cl0, cl1 passed. The report has no test of cl2"}
    stopped = {**second, "state": "stopped", "ok": False}
    assert view(None, None, [passing(), stopped])["verdict"] == {
        "state": "untested",
        "text": "The last test of cluster cl1 was stopped",
    }
    lost = {**passing(), "state": "interrupted", "ok": False, "error": "The controller restarted."}
    assert view(None, None, [lost])["verdict"]["text"] == "The last test was interrupted: The controller restarted"
    assert view(None, None, [lost, stopped])["verdict"]["text"] == (
        "The last test of cluster cl0 was interrupted: The controller restarted. "
        "The last test of cluster cl1 was stopped"
    )


def test_a_run_that_did_not_end_does_not_hide_failures_of_others() -> None:
    stopped = {**passing(), "state": "stopped", "ok": False}
    second = {**passing(), "cluster": "cl1", "agents": [f"other-{agent}" for agent in AGENTS], "ok": False}
    assert view(None, None, [stopped, second])["verdict"] == {
        "state": "failed",
        "text": "Cluster cl1 did not pass its tests. The last test of cluster cl0 was stopped",
    }
    second["results"][0]["ok"] = False
    assert view(None, None, [stopped, second])["verdict"] == {
        "state": "failed",
        "text": "1 test of cluster cl1 failed. The last test of cluster cl0 was stopped",
    }


def test_runs_without_a_cluster_are_never_merged() -> None:
    failed = {**failing(), "cluster": None, "agents": [f"other-{agent}" for agent in AGENTS], "ended": 1}
    for result in failed["results"]:
        result["failures"] = []
    passed = {**passing(), "cluster": None}
    for runs in ([failed, passed], [passed, failed]):
        found = view(None, None, runs)
        assert found["verdict"] == {"state": "failed", "text": "2 tests failed"}
        assert len(found["tests"]) == len(failed["results"]) + len(passed["results"])
        states = [{cable["state"] for cable in rack["cables"]} for rack in found["racks"]]
        assert states[0] == {"passed"} and "unknown" in states[1]


def test_of_runs_of_the_same_machines_without_a_cluster_the_newest_is_drawn() -> None:
    before = {**failing(), "cluster": None, "ended": 1}
    found = view(None, None, [before, {**passing(), "cluster": None}])
    assert {cable["state"] for rack in found["racks"] for cable in rack["cables"]} == {"passed"}
    assert found["verdict"]["text"] == "2 tests failed"


def test_a_run_without_an_end_is_the_last_one_of_its_cluster() -> None:
    for runs in ([{**passing(), "ended": None}, failing()], [failing(), {**passing(), "ended": None}]):
        assert view(None, None, runs)["verdict"]["text"] == "All tests passed"


def test_failed_rack_names_cable_and_remedy() -> None:
    page = Reader(render(pod(), info(), failing()))
    (failed,) = page.cables("failed")
    assert failed.startswith("IPU-Link cable ag03:7 <--> ag04:3: There is no cable in ag03:7; ")
    assert "Connect ag03:7 and ag04:3 with a cable." in page.text
    assert "Change Virm of ag08 from version 1.17.0 to 1.18.0, as on the other machines." in page.text
    targets = [str(attributes["href"]) for tag, attributes in page.elements if tag == "a"]
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert targets
    assert all(target[1:] in ids for target in targets)


def test_page_has_no_external_content_and_is_reproducible() -> None:
    page = render(pod(), info(), failing())
    for tag, attributes in Reader(page).elements:
        for name in ("src", "href", "action", "data"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
    assert "@import" not in page
    assert "url(" not in page
    assert page == render(pod(), info(), failing())


def test_each_part_is_optional() -> None:
    for arguments in ((pod(), None, None), (None, info(), None), (None, None, failing()), (pod(), None, passing())):
        assert "<h2" in render(*arguments)
    assert "Not tested" in render(pod(), info(), None)


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_names_are_escaped(name: str) -> None:
    hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>" + name
    reported = info()
    reported["partitions"][0]["id"] = reported["allocations"][0]["id"] = hostile
    run = failing()
    run["results"][1]["summary"] = [hostile]
    run["results"][1]["failures"][0]["reason"] = hostile
    run["cluster"] = reported["clusters"][0]["id"] = hostile
    for partition in reported["partitions"]:
        partition["cluster"] = hostile
    plain = Reader(render(pod(), info(), failing()))
    escaped = Reader(render(pod(), reported, run))
    assert [tag for tag, _ in escaped.elements] == [tag for tag, _ in plain.elements]
    assert not any(name.startswith("on") for _, attributes in escaped.elements for name in attributes)


def test_ipus_of_partitions() -> None:
    rows = {row["agent"]: row for row in view(None, info(), None)["maps"][0]["rows"]}
    assert [(cell["text"], cell["count"]) for cell in rows["ag01"]["cells"]] == [("vision", 4)]
    assert [(cell["text"], cell["count"]) for cell in rows["ag16"]["cells"]] == [("notebook", 2), ("free", 2)]
    assert [(cell["text"], cell["count"]) for cell in rows["ag05"]["cells"]] == [("free", 4)]
    bands = [(agent, row["band"]["allocation"], row["band"]["count"]) for agent, row in rows.items() if row["band"]]
    assert bands == [("ag16", "team-b", 8), ("ag08", "team-a", 8)]
    assert list(rows) == AGENTS[::-1]


def test_partition_without_ipus_affects_only_its_allocation() -> None:
    reported = info()
    reported["partitions"][0].update(state="PENDING", ipus=[])
    page = view(None, reported, None)
    rows = {row["agent"]: row["cells"] for row in page["maps"][0]["rows"]}
    assert page["maps"][0]["unlocated"] == ["vision"]
    assert rows["ag01"] == [{"text": "unknown", "fill": None, "count": 4}]
    assert rows["ag13"] == [{"text": "free", "fill": None, "count": 4}]
    assert "The controller did not report the IPUs of vision." in render(None, reported, None)


def test_partitions_differ_without_colours() -> None:
    fills = [fill(number) for number in range(FILLS)]
    assert len({tuple(each.items()) for each in fills}) == FILLS
    for one, other in pairwise(fills):
        assert one["colour"] != other["colour"]
        assert one["pattern"] != other["pattern"]
    page = render(None, info(), None)
    symbols = dict(re.findall(r'<g id="chip(\d+)">.*?<path class="weave" d="(.+?)"/></g>', page))
    assert sorted(symbols) == ["0", "1", "2"]
    assert len(set(symbols.values())) == 3
    for number, name in enumerate(("vision", "language", "notebook")):
        assert page.count(f'<use href="#chip{number}"/></svg>{name}') > 2, "legend, map and list show the fill"


def test_versions_of_all_components_are_shown() -> None:
    components = ["GWSW", "HDF", "IPU firmware", "IPUoF server", "Runtime", "Virm"]
    tested = view(None, None, passing())["machines"]
    assert tested["columns"] == components
    assert [cell["text"] for cell in tested["rows"][0]["cells"]] == [
        "2.0.5",
        "1.4.1",
        "2.4.4",
        "v1.3.3",
        "1.18.0",
        "1.18.0",
    ]
    reported = info()
    del reported["ipu_attributes"]
    for agent in reported["agents"]:
        agent["versions"] = dict.fromkeys(components, "1")
    reported["agents"][3]["versions"]["Virm"] = "2"
    now = view(None, reported, None)["machines"]
    assert now["columns"] == components
    assert [row["agent"] for row in now["rows"] if any(cell["odd"] for cell in row["cells"])] == ["ag04"]
    page = Reader(render(None, reported, None))
    assert all(component in page.text for component in components)


@pytest.mark.parametrize("racks", [4, 64])
def test_size_of_the_page_is_linear(tmp_path: Path, racks: int) -> None:
    inventory = PodSize(racks=racks, first_octet=10, offset=0).write(tmp_path)
    large = load(str(inventory))
    start = time.process_time()
    page = render(large, {"clusters": large.desired()["clusters"]}, None)
    assert len(page) < 78_000 * racks  # bytes: 5 MB for 64 racks
    assert page.count('class="machine"') == 16 * racks
    print(f"{racks} racks: {len(page)} bytes, {time.process_time() - start:.2f} s")


def test_connections_of_a_dead_machine_do_not_hide_other_lines() -> None:
    run = failing()
    lines = [f"ag11:{port} [IPU-Link] <--> ag12:{port} [IPU-Link] (not tested)" for port in range(1, 10)]
    run["results"][1]["summary"] = [*lines, "ag03:5 [IPU-Link] <--> ag04:1 [IPU-Link] (failed)"]
    test = view(pod(), info(), run)["tests"][1]
    assert (test["lines"], test["more"], test["untested"]) == ([run["results"][1]["summary"][-1]], [], lines)
    assert "9 connections not tested" in Reader(render(pod(), info(), run)).text


def test_a_narrow_page_has_a_hint_for_the_drawing() -> None:
    page = render(pod(), info(), passing())
    assert "Scroll the drawing sideways to see the whole rack." in Reader(page).text
    assert "@media (max-width: 44rem) { .sideways { display: block; } }" in page
