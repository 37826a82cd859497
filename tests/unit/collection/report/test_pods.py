# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of several PODs on one page."""

from __future__ import annotations

import functools
import re
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.report.page import render, render_pods
from ansible_collections.openipu.pod.plugins.module_utils.report.pods import Source, overview, views

from tests import ROOT
from tests.unit.collection.report.report_support import failing, info, passing
from tests.unit.collection.report.test_page import Reader

FAILURE = "Cannot get the version: the V-IPU controller at 10.2.3.101:8090 does not respond."


@functools.cache
def pod() -> Any:
    return load(str(ROOT / "inventory/twin/pod.yml"))


def source(name: str, run: Any = None, **more: Any) -> Source:
    return Source(pod(), info(), run, name=name, **more)


def test_equal_names_do_not_collide() -> None:
    """Two PODs with the same devices and the same failed cable have separate sections, ids and links."""
    page = Reader(render_pods([source("north", failing()), source("south", failing())]))
    ids = [str(attributes["id"]) for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [str(attributes["href"])[1:] for tag, attributes in page.elements if tag == "a"]
    assert set(links) <= set(ids)
    failed = [link for link in links if link.startswith("cable-")]
    assert [link.rpartition("-")[2] for link in failed] == ["1", "2"]
    assert len(page.cables("failed")) == 2
    labels = [attributes["aria-label"] for _, attributes in page.elements if attributes.get("role") == "region"]
    assert len(labels) == len(set(labels))


def test_each_pod_has_the_content_of_its_own_page() -> None:
    alone = Reader(render(pod(), info(), failing())).text
    both = Reader(render_pods([source("north", passing()), source("south", failing())])).text
    assert alone[alone.index("What to do") :].split() == both[both.rindex("What to do") :].split()


def test_overview_has_totals_and_the_worst_verdict() -> None:
    found = views([source("north", passing()), source("south", failing()), source("west")])
    page = overview(found)
    assert page["verdict"] == {"state": "failed", "text": "Failed: south"}
    single = {figure["name"]: figure["number"] for figure in found[0]["figures"]}
    assert {figure["name"]: figure["number"] for figure in page["figures"]} == {
        name: 3 * number for name, number in single.items()
    }
    assert [(row["title"], row["actions"]) for row in page["pods"]] == [("north", 0), ("south", 2), ("west", 0)]
    assert overview(found[::2])["verdict"] == {"state": "untested", "text": "Not tested: west"}
    assert overview(found[:1] * 2)["verdict"] == {"state": "passed", "text": "All PODs passed"}


def test_an_unread_controller_is_named_and_its_racks_are_drawn() -> None:
    page = Reader(render_pods([source("north", passing()), Source(pod(), name="south", failure=FAILURE)]))
    assert page.text.count(FAILURE) == 1
    assert "Failed: south" in page.text
    machines = [attributes for tag, attributes in page.elements if tag == "rect" and attributes["class"] == "machine"]
    assert len(machines) == 2 * 16


def test_a_failed_read_does_not_hide_failed_tests() -> None:
    (each,) = views([source("north", failing(), failure=FAILURE)])
    assert each["verdict"]["text"] == "2 tests failed"
    assert each["problems"][0] == FAILURE


def test_names_of_pods_are_escaped() -> None:
    hostile = "\"><script>alert(1)</script>'"
    plain = Reader(render_pods([source("north", failing()), source("south")]))
    escaped = Reader(render_pods([source(hostile, failing()), source("south", failure=None)]))
    assert [tag for tag, _ in escaped.elements] == [tag for tag, _ in plain.elements]


def test_one_pod_has_the_page_of_a_single_pod() -> None:
    assert render_pods([Source(pod(), info(), failing())]) == render(pod(), info(), failing())
    assert "cable-1-" not in render(pod(), info(), failing())


def test_size_is_linear_in_the_number_of_pods() -> None:
    def size(count: int) -> int:
        return len(render_pods([source(f"pod{number:03}", passing()) for number in range(count)]))

    two, four, eight = size(2), size(4), size(8)
    assert abs((eight - four) - 2 * (four - two)) < 200
    assert re.search(r"<h1>8 PODs</h1>", render_pods([source(f"pod{number}") for number in range(8)]))
