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

from tests.unit.collection.report.report_support import AGENTS, failing, five_faults, four_domains, info, passing
from tests.unit.collection.report.test_page import Reader

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
    others = Reader(render_pods([tenant(AGENTS[8:], failing())]))
    assert others.cables("failed") == []
    own = Reader(render_pods([tenant(AGENTS[:8], failing())]))
    assert len(own.cables("failed")) == 1
    assert "Connect ag03 IPU-Link port 7 and ag04 IPU-Link port 3 with a cable." in own.text


def test_numbers_of_the_cluster_are_omitted() -> None:
    found = tenant(AGENTS[:2], failing())
    assert {(result["passed"], result["total"]) for run in found.run for result in run["results"]} == {(None, None)}
    assert not re.search(r"\d+/\d+</td>", render_pods([found]))


def test_messages_with_names_of_others_are_withheld() -> None:
    """A cable of the tenant leads to a machine of another one."""
    run = five_faults()  # the cable in ag12 port 1 leads to ag13 gw1
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
