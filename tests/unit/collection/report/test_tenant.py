# SPDX-License-Identifier: GPL-3.0-or-later
"""Report of one tenant: nothing of other tenants is in it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.report import runs, vipu_info
from ansible_collections.openipu.pod.plugins.module_utils.report.page import render_pods
from ansible_collections.openipu.pod.plugins.module_utils.report.pods import views
from ansible_collections.openipu.pod.plugins.module_utils.report.tenant import source

from openipu.vipu.cluster_test.model import Test
from openipu.vipu.domain.model import Topology
from tests.unit.collection.report.report_support import (
    AGENTS,
    failing,
    five_faults,
    four_domains,
    info,
    passing,
    run_of,
)
from tests.unit.collection.report.test_page import Reader
from tests.unit.vipu.cluster_test.rack_support import Bench

RUNS = {"pass": passing(), "fail": failing(), "five": five_faults(), "none": None}


def tenant(
    machines: list[str], run: Any, partitions: list[str] | None = None, data: dict[str, Any] | None = None
) -> Any:
    checked = vipu_info.checked(data or info())
    allocation = {"id": "mine", "cluster": "cl0", "agents": machines}
    own = [each for each in checked["partitions"] if each["id"] in (partitions or [])]
    return source(
        "research",
        checked,
        [runs.checked(run)] if run else [],
        [allocation],
        [{**each, "allocation": "mine"} for each in own],
    )


def words(page: str) -> set[str]:
    """Return the names in a page, also those in attributes and scripts."""
    return set(re.findall(r"\bag\d\d\b|127\.2\.1\.\d+|\bhidden-\d+|team-[ab]|vision|language|notebook", page))


@pytest.mark.parametrize("machines", [AGENTS[:8], AGENTS[8:], AGENTS[4:6] + AGENTS[11:13], ["ag08"], ["ag13"]])
@pytest.mark.parametrize("name", RUNS)
def test_a_tenant_sees_only_its_machines(name: str, machines: list[str]) -> None:
    assert words(render_pods([tenant(machines, RUNS[name])])) == set(machines)


@pytest.mark.parametrize("swapped", [False, True])
def test_cables_between_domains(swapped: bool) -> None:
    """The broken GW-Link leads from ag02 to ag06. The exchanged ones are at ag06 and ag11."""
    run = four_domains(swapped=swapped)
    data = {**info(), "clusters": [{"id": "cl0", "agents": run["agents"], "num_ilds": 4, "topology": "mesh"}]}
    for machines in (["ag02", "ag03"], ["ag05", "ag06"], ["ag02", "ag06"], ["ag06", "ag10"]):
        page = render_pods([tenant(machines, run, data=data)])
        assert words(page) == set(machines)
    assert len(Reader(render_pods([tenant(["ag02", "ag06"], four_domains(), data=data)])).cables("failed")) == 1


def test_ipus_keep_their_machines() -> None:
    """The IPUs of a partition count from the first machine of the cluster, which belongs to another tenant."""
    [page] = views([tenant(AGENTS[8:], passing(), ["language", "notebook"])])
    [map] = page["maps"]
    rows = {row["agent"]: [(cell["text"], cell["count"]) for cell in row["cells"]] for row in map["rows"]}
    assert list(rows) == AGENTS[:7:-1]
    assert rows["ag09"] == [("language", 4)]
    assert rows["ag16"] == [("notebook", 2), ("free", 2)]
    assert rows["ag13"] == [("free", 4)]


def test_failures_of_others_do_not_fail_the_report() -> None:
    """The unplugged cable is at ag03, and the other version on ag08."""
    others = tenant(AGENTS[8:], failing())
    page = Reader(render_pods([others]))
    assert page.cables("failed") == []
    assert "because Cabling failed" not in str(page.elements)
    assert "IPU-Link was skipped, because a test of other machines failed." in str(page.elements)
    [found] = views([others])
    assert found["verdict"] == {"state": "passed", "text": "All tests that ran passed"}
    assert found["actions"] == []
    own = tenant(AGENTS[:8], failing())
    page = Reader(render_pods([own]))
    assert len(page.cables("failed")) == 1
    assert "Connect ag03:7 and ag04:3 with a cable." in page.text
    assert views([own])[0]["verdict"] == {"state": "failed", "text": "2 tests failed"}
    skipped = {result["test"]: result["skipped_because"] for run in own.run for result in run["results"]}
    assert (skipped["IPU-Link"], skipped["Traffic"]) == ("Cabling", "Cabling")


@pytest.mark.parametrize(
    ("machines", "failed"),
    [
        (AGENTS[6:9], True),  # they differ from each other
        (["ag08"], True),  # alone with its version
        (AGENTS[:6], False),  # in the majority
        (AGENTS[8:], False),
    ],
)
def test_another_version_fails_the_machines_that_have_it(machines: list[str], failed: bool) -> None:
    """The other version is on ag08."""
    run = failing()
    run["results"] = [result for result in run["results"] if result["test"] == "Version"]
    [found] = views([tenant(machines, run)])
    assert found["verdict"]["state"] == ("failed" if failed else "passed")
    assert bool(found["actions"]) == failed


@pytest.mark.parametrize(
    ("versions", "failed"), [({"ag01": "1", "ag16": "2"}, False), ({"ag01": "1", "ag02": "2"}, True)]
)
def test_without_a_majority_machines_that_agree_pass(versions: dict[str, str], failed: bool) -> None:
    run = failing()
    run["results"] = [result for result in run["results"] if result["test"] == "Version"]
    run["results"][0]["failures"][0]["versions"] = versions
    [found] = views([tenant(AGENTS[:8], run)])
    assert found["verdict"]["state"] == ("failed" if failed else "passed")


def test_failures_without_a_place_fail_the_report_of_each_tenant() -> None:
    """The controller reports such a failure if no machine reports components."""
    bench = Bench(16, 1, Topology.TORUS)
    for agent in AGENTS:
        bench.hardware(agent).versions.clear()
    run = run_of(bench, (Test.VERSION,))
    assert [each["reason"] for each in run["results"][0]["failures"]] == ["The agents report no components."]
    [found] = views([tenant(AGENTS[:2], run)])
    assert found["verdict"] == {"state": "failed", "text": "1 test failed"}
    assert found["tests"][0]["lines"] == ["The agents report no components."]
    run["results"][0]["failures"][0]["reason"] = "The test failed after ag16 restarted."
    page = render_pods([tenant(AGENTS[:2], run)])
    assert "A test found a fault that also concerns machines of others." in page
    assert words(page) == {"ag01", "ag02"}


def test_a_failure_of_others_does_not_hide_one_without_a_place() -> None:
    run = failing()
    run["results"] = [result for result in run["results"] if result["test"] == "Cabling"]
    [result] = run["results"]
    result["failures"].append({**result["failures"][0], "a": None, "b": None, "reason": "The test was incomplete."})
    [found] = views([tenant(AGENTS[8:], run)])
    assert found["verdict"] == {"state": "failed", "text": "1 test failed"}
    assert found["tests"][0]["lines"] == ["The test was incomplete."]


def test_numbers_of_the_cluster_are_omitted() -> None:
    found = tenant(AGENTS[:2], failing())
    assert {(result["passed"], result["total"]) for run in found.run for result in run["results"]} == {(None, None)}
    assert not re.search(r"\d+/\d+</td>", render_pods([found]))


def test_messages_with_names_of_others_are_withheld() -> None:
    """A cable of the tenant leads to a machine of another one."""
    run = five_faults()  # the cable in ag12:1 leads to ag13:gw1
    found = tenant(AGENTS[10:12], run)
    reasons = [failure["reason"] for run in found.run for result in run["results"] for failure in result["failures"]]
    assert "A test found a fault that also concerns machines of others." in reasons


def test_tests_of_all_clusters_of_a_tenant_are_shown() -> None:
    """The cable is unplugged in the second cluster. A message of the first one names a machine of the second one."""
    clusters = [
        {"id": id, "agents": agents, "num_ilds": 1, "topology": "torus"}
        for id, agents in (("cl0", AGENTS[8:]), ("cl1", AGENTS[:8]))
    ]
    data = vipu_info.checked({**info(), "clusters": clusters, "partitions": []})
    run = failing()
    tests = [runs.checked({**run, "cluster": each["id"], "agents": each["agents"]}) for each in clusters]
    for result in tests[0]["results"]:
        result["failures"] = [
            {**each, "a": None, "b": None, "found": None, "found_b": None, "agent": "ag09", "reason": "ag09 and ag03."}
            for each in result["failures"]
        ]
    for machines in (["ag09"], AGENTS[1:5], ["ag04", "ag09"]):
        allocation = {"id": "mine", "cluster": None, "agents": machines}
        found = source("research", data, tests, [allocation], [])
        assert {each["cluster"] for each in found.run} == {"cl0" if int(agent[2:]) > 8 else "cl1" for agent in machines}
        page = render_pods([found])
        assert words(page) == set(machines)
        assert len(Reader(page).cables("failed")) == (1 if "ag03" in machines else 0)
