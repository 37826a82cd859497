# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the tutorial of AWX work as printed, from a fresh copy of the checkout."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.awx.pages import HOST, open_shell
from tests.awx.standin.app import ADMINISTRATOR, PASSWORD
from tests.awx.standin.server import Server
from tests.docs.blocks import commands
from tests.docs.shell import run_block

PAGE = ROOT / "docs/tutorials/control-desk.md"
PROJECT = "https://git.example.com/pod.git"
APPLY = "ansible-playbook playbooks/awx.yml -i inventory/desk/pod.yml -e @desk.yml"


def test_the_commands_of_the_tutorial_work(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "playbooks", tmp_path / "project/playbooks")
    # The reader enters them, and installs the collection.
    with (
        open_shell(tmp_path, CONTROLLER_USERNAME=ADMINISTRATOR, CONTROLLER_PASSWORD=PASSWORD) as shell,
        Server(tmp_path, {PROJECT: tmp_path / "project"}, shell.listen(443), HOST) as server,
    ):
        steps = _steps(server)
        for block in commands(PAGE):
            if block.not_run:
                continue
            server.awx.requests.clear()
            run_block(block, shell, 600)
            if steps and steps[0][0] == block.text.strip().splitlines()[-1]:
                steps.pop(0)[1]()
        assert steps == [], "the page has no such command"
        assert server.awx.unknown_fields == []


def _steps(server: Server) -> list[tuple[str, Callable[[], None]]]:
    """Return what is done and verified in AWX after commands of the page, in its order."""
    store = server.awx.store
    before = {name: len(objects) for name, objects in store.objects.items() if name != "tokens"}

    def wrote_nothing() -> None:
        assert server.awx.requests
        assert server.awx.writes == []

    def enter_key() -> None:
        expected = {"Name": None, "IPUs": ["1", "2", "4", "8"], "Graph compilation domains": None}
        assert _survey(server) == expected
        assert f"{len(store.objects['job_templates'])} job templates" in PAGE.read_text()
        _credential(server)["inputs"]["access_key"] = "entered by hand"

    def has_key_and_sizes() -> None:
        assert _survey(server)["IPUs"] == ["4", "8"]
        assert _credential(server)["inputs"]["access_key"] == "entered by hand"

    def is_empty() -> None:
        assert {name: len(objects) for name, objects in store.objects.items() if name != "tokens"} == before

    return [
        (f"{APPLY} --check --diff", wrote_nothing),
        (APPLY, enter_key),
        (APPLY, wrote_nothing),
        (f"{APPLY} --check --diff", wrote_nothing),
        (APPLY, has_key_and_sizes),
        ("awx organizations list -f human --filter name", is_empty),
    ]


def _survey(server: Server) -> dict[str, Any]:
    order = server.awx.store.find("job_templates", name="Order IPUs")
    assert order
    return {question["question_name"]: question.get("choices") for question in order["_survey"]["spec"]}


def _credential(server: Server) -> Any:
    found = server.awx.store.find("credentials", name="POD V-IPU controller")
    assert found
    return found
