# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal of a description: only its objects, in the reverse order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.awx.runs import DESCRIPTION, run_playbook
from tests.awx.standin.resources import RESOURCES
from tests.awx.standin.server import Server

VARIABLES = {"awx_content_folder": str(DESCRIPTION)}
ABSENT = {**VARIABLES, "awx_state": "absent"}


def test_absent_removes_the_objects_of_the_description_only(start: Callable[[], Server], tmp_path: Path) -> None:
    server = start()
    store = server.awx.store
    before = {name: len(objects) for name, objects in store.objects.items()}
    assert run_playbook(server, tmp_path, variables=VARIABLES).changes
    lab = store.find("organizations", name="Lab")
    assert lab
    foreign = store.add(
        RESOURCES["inventories"],
        {"name": "Of others", "organization": lab["id"], "kind": "", "host_filter": None, "variables": ""},
    )
    server.awx.requests.clear()

    shown = run_playbook(server, tmp_path, "--check", variables=ABSENT)
    assert server.awx.writes == []
    assert len(shown.changes) == 14
    assert shown.result["kept"] == ["organization 'Lab': it still has inventory 'Of others'"]

    removed = run_playbook(server, tmp_path, variables=ABSENT)
    assert removed.changes == shown.changes
    assert removed.changes[0] == "deleted schedule 'Every night'"
    assert store.get("inventories", foreign["id"]) is foreign
    assert store.get("organizations", lab["id"]) is lab

    store.remove(foreign)
    assert run_playbook(server, tmp_path, variables=ABSENT).changes == ["deleted organization 'Lab'"]
    assert {name: len(objects) for name, objects in store.objects.items() if name != "tokens"} == {
        name: count for name, count in before.items() if name != "tokens"
    }
    server.awx.requests.clear()
    assert run_playbook(server, tmp_path, variables=ABSENT).changes == []
    assert server.awx.writes == []


def test_entry_with_state_absent(start: Callable[[], Server], tmp_path: Path) -> None:
    server = start()
    folder = tmp_path / "description"
    folder.mkdir()
    file = folder / "objects.yml"
    file.write_text("controller_organizations: [{name: Lab}]\ncontroller_teams: [{name: A, organization: Lab}]\n")
    variables = {"awx_content_folder": str(folder)}
    assert len(run_playbook(server, tmp_path, variables=variables).changes) == 2
    gone = {**variables, "controller_teams": [{"name": "A", "organization": "Lab", "state": "absent"}]}
    assert run_playbook(server, tmp_path, variables=gone).changes == ["deleted team 'A'"]
    assert run_playbook(server, tmp_path, variables=gone).changes == []
