# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of module tasks with a real controller, without Ansible."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

from tests import ROOT
from tests.integration.collection.playbook import results
from tests.integration.collection.tasks import AGENTS, NAMES, NOTEBOOK, VISION, Perform, performer
from tests.integration.vipu_servers import InProcess, InstantLife


@pytest.fixture
def public_only(server: InProcess, vipu_server: Callable[..., InProcess]) -> InProcess:
    """Return a server with the same machines and the public API only."""
    server.stop()
    return vipu_server(life=InstantLife, public_only=True)


def test_omitted_options_stay_unchanged(perform: Perform, tmp_path: Path) -> None:
    assert not perform("vipu_cluster", id="cl0", agents=NAMES)["changed"]  # it is a torus
    assert perform("vipu_agent", id="ag01", host="127.0.9.1", port=8081)["changed"]
    moved = perform("vipu_agent", id="ag01", host="127.0.9.9")
    assert (moved["changed"], moved["agent"]["host"], moved["agent"]["port"]) == (True, "127.0.9.9", 8081)
    file = str(tmp_path / "alice.hcl")
    perform("vipu_user", id="alice", allocations=["team-a"], config_dest=file)
    admin_now = perform("vipu_user", id="alice", role="admin", config_dest=file)
    assert admin_now["user"] == {"id": "alice", "role": "admin", "allocations": ["team-a"]}
    without_allocations = perform("vipu_user", id="alice", allocations=[], config_dest=file)
    assert without_allocations["user"] == {"id": "alice", "role": "admin", "allocations": []}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    ("options", "allocations"),
    [
        ({}, ["*"]),
        ({"allocations": ["*"]}, ["*"]),
        ({"allocations": []}, []),
        ({"allocations": ["team-a"]}, ["team-a"]),
        ({"role": "admin"}, []),
    ],
)
def test_omitted_allocations_of_a_new_user_are_all(
    perform: Perform, tmp_path: Path, options: dict[str, Any], allocations: list[str], check: bool
) -> None:
    given = {"id": "bob", "config_dest": str(tmp_path / "bob.hcl"), **options}
    made = perform("vipu_user", **given, check=check)
    expected = allocations if not check or "role" not in options else None
    assert (made["changed"], made["user"].get("allocations")) == (True, expected)
    warning = "User 'bob' may use all allocations, because allocations is omitted."
    assert [each.startswith(warning) for each in made.get("warnings", [])] == ([] if options else [True])
    if not check:
        again = perform("vipu_user", **given, check=True)
        assert (again["changed"], again["user"]["allocations"]) == (False, allocations)
        assert "warnings" not in perform("vipu_user", **given)


@pytest.mark.parametrize("before", [["*"], [], ["team-a"]])
@pytest.mark.parametrize("after", [None, ["*"], [], ["team-a"]])
def test_rights_of_an_existing_user(
    perform: Perform, tmp_path: Path, before: list[str], after: list[str] | None
) -> None:
    given = {"id": "bob", "config_dest": str(tmp_path / "bob.hcl")}
    perform("vipu_user", **given, allocations=before)
    options = {**given, "allocations": after}
    expected = before if after is None else after
    for check in (True, False):
        changed = perform("vipu_user", **options, check=check)
        assert (changed["changed"], changed["user"]["allocations"]) == (expected != before, expected)
    again = perform("vipu_user", **options)
    assert (again["changed"], again["user"]["allocations"]) == (False, expected)


def test_a_promoted_and_demoted_user_keeps_its_allocations(perform: Perform, tmp_path: Path) -> None:
    given = {"id": "bob", "config_dest": str(tmp_path / "bob.hcl")}
    perform("vipu_user", id="root", role="admin", config_dest=str(tmp_path / "root.hcl"))
    for allocations in (["*"], [], ["team-a"]):
        perform("vipu_user", **given, allocations=allocations)
        for role in ("admin", "user"):
            assert perform("vipu_user", **given, role=role)["user"] == {
                "id": "bob",
                "role": role,
                "allocations": allocations,
            }


def test_an_allocation_changes_by_size_and_by_agents(perform: Perform) -> None:
    smaller = perform("vipu_allocation", id="team-a", cluster="cl0", size=1)
    assert (smaller["changed"], smaller["allocation"]["agents"]) == (True, ["ag01"])
    assert smaller["diff"]["after"]["allocations"]["team-a"] == {"id": "team-a", "cluster": "cl0", "size": 1}
    other = perform("vipu_allocation", id="team-a", cluster="cl0", agents=["ag02"])
    assert (other["changed"], other["allocation"]["agents"]) == (True, ["ag02"])


def test_a_failed_recreation_keeps_the_old_partition(perform: Perform) -> None:
    perform("vipu_partition", **VISION)
    failed = perform("vipu_partition", **{**VISION, "size": 16}, recreate=True)
    assert (failed["failed"], failed["changed"]) == (True, False)
    assert "Cannot create partition 'vision': allocation 'team-a' has" in failed["msg"]
    assert not perform("vipu_partition", **VISION)["changed"]
    again = perform("vipu_partition", **{**VISION, "size": 8}, recreate=True)
    assert (again["changed"], again["partition"]["size"], again["partition"]["state"]) == (True, 8, "ACTIVE")


def test_a_failed_recreation_over_the_public_api_reports_the_removal(public_only: InProcess) -> None:
    perform = performer(public_only)
    perform("vipu_partition", **VISION)
    failed = perform("vipu_partition", **{**VISION, "size": 16}, recreate=True)
    assert (failed["failed"], failed["changed"]) == (True, True)
    assert failed["msg"].startswith(
        "Cannot recreate partition 'vision': it was removed and could not be created again: "
    )
    assert perform("vipu_partition", **VISION)["changed"]


def test_check_mode_reports_errors_of_the_controller(server: InProcess, perform: Perform) -> None:
    def predicted(*partitions: dict[str, Any], **options: Any) -> dict[str, Any]:
        return perform("vipu_pod", check=True, partitions=list(partitions), **options)

    big = {"id": "big", "allocation": "team-a", "size": 16}
    dependent = {"id": "astray", "allocation": "team-b", "size": 1}
    assert predicted(VISION)["changed"]
    assert "warnings" not in predicted(VISION)
    rejected = predicted(big)
    assert (rejected["failed"], rejected["changed"]) == (True, False)
    assert rejected["msg"].startswith("Cannot create partition 'big': allocation 'team-a' has")
    assert predicted(big, validate=False)["changed"]
    missing = predicted(dependent)  # an earlier task may create the allocation
    assert missing["changed"]
    (warning,) = missing["warnings"]
    assert warning.startswith(
        "This task fails unless an earlier task creates the missing object: Cannot create partition 'astray'"
    )
    assert predicted(dependent, big)["failed"]
    assert not server.server.controller.state.partitions


@pytest.mark.parametrize("module", ["vipu_partition", "vipu_pod"])
def test_a_rejected_object_has_the_code_of_the_controller(perform: Perform, module: str) -> None:
    big = {"id": "big", "allocation": "team-a", "size": 16}
    failed = perform(module, **(big if module == "vipu_partition" else {"partitions": [big]}))
    assert failed["error_code"] == "OPU608"
    assert [error["error_code"] for error in failed["errors"]] == ["OPU608"]


def test_the_example_of_the_page_about_error_codes(server: InProcess, tmp_path: Path) -> None:
    page = ROOT / "docs" / "reference" / "errors.md"
    _, _, rest = page.read_text().partition("```yaml\n")
    example = rest.partition("```")[0]
    host, port = server.address.rsplit(":", 1)
    tasks = yaml.safe_load(example.replace("10.3.1.101", f"{host}\n        api_port: {port}"))
    done = results(tmp_path, tasks)
    assert [result["failed"] for result in done if "partition" in result or result["failed"]] == [True, False]
    assert done[0]["error_code"] == "OPU608"
    assert server.server.controller.state.partitions["vision"].size == 4
    again = results(tmp_path, tasks)
    assert again[0]["error_code"] == "OPU101"
    assert (again[-1]["failed"], again[-1]["changed"]) == (False, False)


def test_check_mode_only_compares_over_the_public_api(public_only: InProcess) -> None:
    big = {"id": "big", "allocation": "team-a", "size": 16}
    assert performer(public_only)("vipu_pod", check=True, partitions=[big])["changed"]


def test_pruning_frees_ipus_over_the_public_api(public_only: InProcess) -> None:
    perform = performer(public_only)
    perform("vipu_pod", partitions=[{"id": "all", "allocation": "team-a", "size": 8}])
    swapped = perform("vipu_pod", partitions=[VISION, NOTEBOOK], prune=["partitions"])
    assert swapped["partitions"] == {
        "created": ["vision", "notebook"],
        "updated": [],
        "recreated": [],
        "removed": ["all"],
        "unchanged": [],
    }
    assert swapped["partition_states"] == {"vision": "ACTIVE", "notebook": "ACTIVE"}


@pytest.mark.parametrize("module", ["vipu_partition", "vipu_pod"])
def test_recovery_options_are_changed_in_place(server: InProcess, perform: Perform, module: str) -> None:
    def present(**options: Any) -> dict[str, Any]:
        desired = {**VISION, **options}
        return perform(module, **(desired if module == "vipu_partition" else {"partitions": [desired, NOTEBOOK]}))

    def record() -> Any:
        return server.server.controller.state.partitions["vision"]

    present(relocatable=True)
    assert (record().relocatable, record().disable_auto_reset) == (True, False)
    devices = record().devices
    assert not present()["changed"]
    assert not present(relocatable=True, disable_auto_reset=False)["changed"]
    changed = present(disable_auto_reset=True)
    assert changed["changed"]
    assert changed["diff"]["before"]["partitions"]["vision"]["disable_auto_reset"] is False
    assert changed["diff"]["after"]["partitions"]["vision"]["disable_auto_reset"] is True
    assert (record().relocatable, record().disable_auto_reset) == (True, True)
    assert record().devices is devices  # it was not reset
    reported = perform("vipu_partition_info", id="vision")["partitions"][0]
    assert (reported["relocatable"], reported["disable_auto_reset"], reported["state"]) == (True, True, "ACTIVE")


def test_recovery_options_are_unknown_over_the_public_api(public_only: InProcess) -> None:
    perform = performer(public_only)
    made = perform("vipu_partition", **VISION, relocatable=True)
    assert (made["changed"], "warnings" in made) == (True, False)
    again = perform("vipu_partition", **VISION, relocatable=False)
    assert again["changed"] is False
    assert again["warnings"] == [
        "Cannot compare relocatable of partition 'vision': the controller does not report it over this transport. "
        "Check it on the controller."
    ]
    assert "relocatable" not in perform("vipu_partition_info", id="vision")["partitions"][0]


def test_reset_is_not_idempotent(perform: Perform) -> None:
    missing = perform("vipu_partition", id="vision", state="reset")
    assert missing["msg"] == "Cannot reset partition 'vision': it does not exist. Create it with state present."
    perform("vipu_partition", **VISION)
    for check in (True, False, False):
        reset = perform("vipu_partition", id="vision", state="reset", check=check)
        assert (reset["changed"], reset["partition"]["state"]) == (True, "ACTIVE")


def test_timeout_reports_the_last_state(server: InProcess, perform: Perform) -> None:
    server.life.configures = False
    slow = perform("vipu_partition", **VISION, wait_timeout=0.2)
    assert (slow["failed"], slow["changed"]) == (True, True)
    assert slow["msg"] == (
        "Cannot activate partition 'vision': it is still PENDING (creating) after 0.2 seconds. Check the controller, "
        "or increase wait_timeout."
    )
    assert slow["partitions"]["vision"]["operation"] == "CREATING"
    again = perform("vipu_pod", partitions=[VISION, NOTEBOOK], wait_timeout=0.1)
    assert (again["changed"], set(again["partitions"])) == (True, {"vision", "notebook"})
    assert not perform("vipu_pod", partitions=[VISION, NOTEBOOK], wait=False)["changed"]


def test_a_rejected_batch_has_an_error_for_each_object(server: InProcess, perform: Perform) -> None:
    server.admin.RemoveAgent(admin.RemoveRequest(id="ag02", force=True))
    failed = perform(
        "vipu_pod",
        agents=[AGENTS[0], {"id": "ag03"}],
        clusters=[{"id": "cl0", "agents": ["ag01"]}],
        allocations=[{"id": "team-a", "cluster": "cl0", "size": 3}],
    )
    assert (failed["failed"], failed["changed"]) == (True, False)
    assert {(each["kind"], each["id"]) for each in failed["errors"]} == {
        ("agent", "ag03"),
        ("cluster", "cl0"),
        ("allocation", "team-a"),
    }
    assert failed["msg"].count("Cannot create agent 'ag03'") == 1
    assert "batch was rejected" not in failed["msg"]
    assert failed["agents"]["unchanged"] == ["ag01"]
    assert failed["clusters"]["created"] == []


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("vipu_agent", {"id": "ag09", "host": "127.0.9.9", "port": -1}),
        ("vipu_allocation", {"id": "a2", "cluster": "cl0", "size": 1 << 40}),
        ("vipu_partition", {"id": "p2", "allocation": "team-a", "size": -4}),
        ("vipu_pod", {"partitions": [{"id": "p2", "allocation": "team-a", "size": -4}]}),
        ("vipu_cluster", {"id": "c" * 10_000, "agents": NAMES}),
        ("vipu_agent", {"id": "ag\x0009", "host": "127.0.9.9"}),
        ("vipu_agent", {"id": "ag\udc8009", "host": "127.0.9.9"}),
        ("vipu_agent", {"id": "ag09", "host": "127.0.9.9", "api_access_key": "päss", "api_user_id": "a"}),
    ],
)
def test_invalid_values_are_rejected(perform: Perform, module: str, options: dict[str, Any]) -> None:
    failed = perform(module, **options)
    assert failed["failed"]
    assert re.fullmatch(r"(Cannot|The user id) [^\n]*\.", failed["msg"]), failed["msg"]
    assert not perform("vipu_info", gather_subset=["partitions"])["partitions"]


def test_a_user_whose_key_cannot_be_stored_is_not_created(perform: Perform, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    for check in (True, False):
        outcome = perform("vipu_user", id="alice", config_dest=str(blocked / "alice.hcl"), check=check)
        assert outcome["changed"] is check
    assert outcome["msg"].startswith(f"Cannot write file '{blocked / 'alice.hcl'}': ")
    assert perform("vipu_info", gather_subset=["users"])["users"] == []
    folder = tmp_path / "keys"
    folder.mkdir()
    made = perform("vipu_user", id="alice", config_dest=str(folder))
    assert made["config_dest"] == str(folder / "alice.vipu-cli.hcl")
    assert (folder / "alice.vipu-cli.hcl").stat().st_mode & 0o777 == 0o600
    assert not perform("vipu_user", id="alice", config_dest=str(folder))["changed"]


def test_omitted_kinds_stay_unchanged(perform: Perform) -> None:
    perform("vipu_pod", partitions=[VISION, NOTEBOOK])
    pruned = perform("vipu_pod", partitions=[VISION], prune=["partitions"])
    assert pruned["partitions"]["removed"] == ["notebook"]
    assert "agents" not in pruned
    left = perform("vipu_info", gather_subset=["agents", "clusters", "allocations", "partitions"])
    assert [len(left[kind]) for kind in ("agents", "clusters", "allocations", "partitions")] == [2, 1, 1, 1]
    emptied = perform("vipu_pod", partitions=[], allocations=[], prune=["partitions", "allocations"])
    assert emptied["allocations"]["removed"] == ["team-a"]


def test_prune_requires_a_list(perform: Perform) -> None:
    for check in (True, False):
        rejected = perform("vipu_pod", agents=AGENTS[:1], prune=["agents", "partitions"], check=check)
        assert rejected["msg"] == (
            "Cannot prune partitions: the list of partitions to keep is missing. Set partitions; "
            "an empty list removes all."
        )
    assert len(perform("vipu_info", gather_subset=["agents"])["agents"]) == 2


def test_force_recreates_desired_dependents(perform: Perform) -> None:
    perform("vipu_allocation", id="team-a", cluster="cl0", size=1)
    perform("vipu_pod", clusters=[{"id": "cl0", "agents": ["ag01"]}, {"id": "cl1", "agents": ["ag02"]}])
    perform("vipu_pod", partitions=[NOTEBOOK, {**NOTEBOOK, "id": "scratch"}])
    desired = {
        "allocations": [{"id": "team-a", "cluster": "cl1", "size": 1}],
        "partitions": [NOTEBOOK],
        "recreate": True,
    }
    rejected = perform("vipu_pod", **desired)
    assert (rejected["failed"], rejected["changed"]) == (True, False)
    assert "Cannot remove allocation 'team-a': partitions 'notebook', 'scratch' are in it" in rejected["msg"]
    predicted = perform("vipu_pod", **desired, force=True, check=True)
    applied = perform("vipu_pod", **desired, force=True)
    assert applied["allocations"]["recreated"] == ["team-a"]
    assert (applied["partitions"]["recreated"], applied["partitions"]["removed"]) == (["notebook"], ["scratch"])
    assert applied["partition_states"] == {"notebook": "ACTIVE"}
    del applied["partition_states"]
    assert predicted == applied
    assert not perform("vipu_pod", **desired, force=True)["changed"]
