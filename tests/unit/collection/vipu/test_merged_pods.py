# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter merged_pods: objects of several controllers in one view."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.openipu.pod.plugins.filter.merged_pods import merged_pods

DOWN = {"failed": True, "msg": "Cannot get the version: it does not respond.", "changed": False}


def result(version: str, **more: Any) -> dict[str, Any]:
    return {"changed": False, "version": version, "agents": [{"id": "ag01", "state": "Up"}], "partitions": [], **more}


def test_equal_names_do_not_collide() -> None:
    fits = {"a1": {"16": 1}}
    merged = merged_pods({"north": result("1.18.0", fits=fits), "south": result("1.17.0", users=[{"id": "alice"}])})
    assert merged["agents"] == [
        {"pod": "north", "id": "ag01", "state": "Up"},
        {"pod": "south", "id": "ag01", "state": "Up"},
    ]
    assert merged["users"] == [{"pod": "south", "id": "alice"}]
    assert (merged["versions"], merged["fits"]) == ({"north": "1.18.0", "south": "1.17.0"}, {"north": fits})
    assert (merged["clusters"], merged["ipu_attributes"], merged["failures"]) == ([], {}, {})


def test_an_item_cannot_name_another_pod() -> None:
    given = {"north": result("1.18.0", users=[{"id": "alice", "pod": "south"}])}
    assert merged_pods(given)["users"] == [{"id": "alice", "pod": "north"}]


def test_failed_results_hide_no_others() -> None:
    merged = merged_pods({"north": DOWN, "south": result("1.18.0"), "west": {"unreachable": True}})
    assert merged["failures"] == {"north": DOWN["msg"], "west": "Cannot read the controller. See its log."}
    assert [agent["pod"] for agent in merged["agents"]] == ["south"]


def test_no_pods() -> None:
    assert merged_pods({})["failures"] == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "merged_pods: the input is not a mapping from names of PODs to results of vipu_info. Correct it."),
        ({"north": None}, "merged_pods: the result of POD 'north' is not a mapping. Use the result of vipu_info."),
        (
            {"north": {"skipped": True}},
            "merged_pods: the result of POD 'north' has no values of vipu_info. Use the result of vipu_info.",
        ),
    ],
)
def test_other_input_is_rejected(given: Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=f"^{message}$".replace(".", "[.]")):
        merged_pods(given)


def test_the_input_is_not_changed() -> None:
    given = {"north": result("1.18.0")}
    merged_pods(given)["agents"][0]["state"] = "Down"
    assert given == {"north": result("1.18.0")}
