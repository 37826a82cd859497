# SPDX-License-Identifier: GPL-3.0-or-later
"""AWX accepts the whole description of a POD, and finds nothing to change afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests import ROOT
from tests.awx.runs import run_playbook
from tests.awx.standin.server import Server

CONTENT = ROOT / "extensions/awx"
SETTINGS = yaml.safe_load((CONTENT / "defaults.yml").read_text().replace("!unsafe", ""))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("awx")
    shutil.copytree(ROOT / "playbooks", folder / "project/playbooks")
    with Server(folder, {SETTINGS["awx_project_url"]: folder / "project"}) as running:
        made = run_playbook(running, folder)
        assert made.changes
        yield running


def test_awx_ignores_no_field(server: Server) -> None:
    assert server.awx.unknown_fields == []


def test_next_run_writes_nothing(server: Server, tmp_path: Path) -> None:
    server.awx.requests.clear()
    assert run_playbook(server, tmp_path).changes == []
    assert server.awx.writes == []


def test_every_template_has_its_playbook_and_each_enabled_survey_its_questions(server: Server) -> None:
    store = server.awx.store
    templates = [*store.all("job_templates"), *store.all("workflow_job_templates")]
    described = list(store.all("job_templates"))
    files = [yaml.safe_load(_plain(file.read_text())) for file in (CONTENT / "job_templates").glob("*.yml")]
    assert len(described) == sum(len(file["controller_templates"]) for file in files)
    for template in templates:
        assert bool(template["survey_enabled"]) == bool((template.get("_survey") or {}).get("spec")), template["name"]


def _plain(text: str) -> str:
    """Return YAML without the tag for text that is not rendered."""
    return text.replace("!unsafe", "")
