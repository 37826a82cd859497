# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the plan of a rolling upgrade and of the configuration of rack_tool."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils import rolling_upgrade
from hypothesis import given
from hypothesis import strategies as st

NEW = {"GWSW": "2.1.0"}
AGENTS = [f"ag{number:02}" for number in range(1, 9)]
NAMES = {agent: agent.replace("ag", "ipum") for agent in AGENTS}


def rack(done: int = 0, ilds: int = 2, **more: Any) -> dict[str, Any]:
    """Return the state of eight machines of a cluster, the first ``done`` with the new version."""
    agents = [
        {"id": agent, "state": "Up", "reason": None, "versions": {"GWSW": "2.1.0" if place < done else "2.0.5"}}
        for place, agent in enumerate(AGENTS)
    ]
    return {
        "agents": agents[::-1],  # the controller may report any order
        "clusters": [{"id": "cl0", "agents": AGENTS, "num_ilds": ilds}],
        "allocations": [{"id": "team-a", "cluster": "cl0", "agents": AGENTS[:4]}],
        "partitions": [],
        **more,
    }


def partition(*machines: int, **more: Any) -> dict[str, Any]:
    ipus = [{"ild": place // 4, "topology_id": place % 4 * 4 + ipu} for place in machines for ipu in range(4)]
    return {"id": "p", "allocation": "team-a", "cluster": "cl0", "size": len(ipus), "ipus": ipus, **more}


def plan(seen: dict[str, Any], **options: Any) -> dict[str, Any]:
    return rolling_upgrade.plan(seen, NAMES, **{"versions": NEW, **options})


def test_machines_are_failure_domains_from_the_lowest_up() -> None:
    made = plan(rack())
    assert made["problems"] == []
    assert [each["machines"] for each in made["domains"]] == [[name] for name in NAMES.values()]
    assert made["domains"][0] == {
        "name": "ipum01",
        "agents": ["ag01"],
        "machines": ["ipum01"],
        "clusters": ["cl0"],
        "partitions": [],
    }


def test_machines_with_the_new_version_are_done() -> None:
    made = plan(rack(done=6))
    assert made["up_to_date"] == [f"ipum0{number}" for number in range(1, 7)]
    assert [each["name"] for each in made["domains"]] == ["ipum07", "ipum08"]
    assert plan(rack(done=8))["domains"] == []


def test_ipu_link_domains_as_failure_domains() -> None:
    made = plan(rack(done=1), domain="ild")
    assert [(each["name"], len(each["agents"])) for each in made["domains"]] == [
        ("cl0, IPU-Link domain 0", 3),
        ("cl0, IPU-Link domain 1", 4),
    ]


def test_explicit_domains_come_first_and_are_disjoint() -> None:
    made = plan(rack(), domains={"odd": ["ipum05", "ag07"], "even": ["ipum02"]})
    assert [each["agents"] for each in made["domains"][:3]] == [["ag05", "ag07"], ["ag02"], ["ag01"]]
    made = plan(rack(), domains={"a": ["ipum05"], "b": ["ipum05"]})
    assert made["problems"] == [
        "ipum05 (agent ag05) is in the failure domains 'a' and 'b'. Remove it from one of them."
    ]


def test_selected_machines() -> None:
    assert [each["name"] for each in plan(rack(), only=["ag03", "ipum02"])["domains"]] == ["ipum02", "ipum03"]
    assert plan(rack(), only=["ipum09"])["problems"] == [
        "The controller has no agent of IPU-Machine 'ipum09'. Check 'vipu-admin list agents'."
    ]


def test_unknown_versions_are_rejected() -> None:
    assert "virm_agent_upgrade_versions" in plan(rack(), versions={})["problems"][0]
    assert plan(rack(), versions={"Gateway": "1"})["problems"] == [
        "No agent reports the version of 'Gateway'. In virm_agent_upgrade_versions, choose from GWSW."
    ]


def test_machine_that_is_down_blocks_unless_selected() -> None:
    seen = rack()
    seen["agents"][0].update(state="Down", reason="Its connection broke.", versions={})
    (problem,) = plan(seen)["problems"]
    assert problem.startswith("ipum08 (agent ag08) is Down (Its connection broke). Repair it before the upgrade")
    assert plan(seen, only=["ipum08"])["problems"] == []
    seen = rack(done=7)
    seen["agents"][0].update(state="Down", versions={})
    assert len(plan(seen)["problems"]) == 1


def test_partitions_that_cannot_move_block_or_are_interrupted() -> None:
    seen = rack(partitions=[partition(0, 1)])
    (problem,) = plan(seen)["problems"]
    assert problem == (
        "Partition 'p' is on ipum01, ipum02 and may not move. Remove it, make it relocatable, or interrupt it with "
        "virm_agent_upgrade_partitions=interrupt."
    )
    made = plan(seen, partitions="interrupt")
    assert made["problems"] == []
    assert [each["partitions"] for each in made["domains"][:3]] == [["p"], ["p"], []]
    assert plan(seen, only=["ipum03"])["problems"] == []


@pytest.mark.parametrize(("fits", "problems"), [(1, 0), (0, 1)])
def test_relocatable_partitions_need_a_free_place(fits: int, problems: int) -> None:
    seen = rack(partitions=[partition(0, relocatable=True)], fits={"team-a": {"4": fits}})
    found = plan(seen)["problems"]
    assert len(found) == problems
    assert all("has no free place to move to. Remove it, make room in allocation 'team-a'" in each for each in found)


def test_partition_without_ipus_may_use_its_whole_allocation() -> None:
    seen = rack(partitions=[{"id": "p", "allocation": "team-a", "size": 4}])
    made = plan(seen, partitions="interrupt")
    assert [bool(each["partitions"]) for each in made["domains"]] == [True] * 4 + [False] * 4


@given(done=st.sets(st.integers(0, 7)), ilds=st.sampled_from([1, 2, 4, 8]), kind=st.sampled_from(["machine", "ild"]))
def test_every_pending_machine_is_upgraded_once(done: set[int], ilds: int, kind: str) -> None:
    seen = rack(ilds=ilds)
    for row in seen["agents"]:
        if AGENTS.index(row["id"]) in done:
            row["versions"] = NEW
    made = plan(seen, domain=kind)
    upgraded = [agent for each in made["domains"] for agent in each["agents"]]
    assert upgraded == [agent for place, agent in enumerate(AGENTS) if place not in done]
    assert all(len(each["agents"]) <= (1 if kind == "machine" else 8 // ilds) for each in made["domains"])


def test_versions_from_the_output_of_the_command() -> None:
    printed = """
Agent ID              : ag01
Virm version          : 1.18.0
GWSW Version          | 2.0.5
IPUoF server version    v1.3.3
HDF Hash              : 0123456789012345678901234567890123456789
"""
    assert rolling_upgrade.printed_versions(printed) == {"Virm": "1.18.0", "GWSW": "2.0.5", "IPUoF server": "v1.3.3"}


def test_rack_tool_configuration_of_some_machines() -> None:
    entries = [{"name": f"m{number}", "bmc": f"10.1.1.{number}", "gw": f"10.1.2.{number}"} for number in range(1, 5)]
    config = {"credentials": {"gw_password": "x"}, "options": [], "timeouts": ["1", "2"], "rack": entries}
    smaller = rolling_upgrade.filter_machines(config, {"m2": [], "ipum04": ["10.9.9.9", "10.1.2.4"]})
    assert smaller == {**config, "rack": [entries[1], entries[3]]}
    with pytest.raises(ValueError, match=r"^has no entry for ipum05, by name or address$"):
        rolling_upgrade.filter_machines(config, {"m1": [], "ipum05": ["10.1.2.5"]})
    with pytest.raises(ValueError, match="not a JSON object"):
        rolling_upgrade.filter_machines([], {})
