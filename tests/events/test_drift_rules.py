# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule for drift starts the workflow of an AWX, whose approval decides. The stand-in for AWX runs no jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.awx.requests import Requests
from tests.awx.standin.server import Server
from tests.events.rulebook import Rulebook
from tests.events.test_alertmanager_rules import INVENTORY, listening, post, variables
from tests.ports import free_port
from tests.unit.collection.awx.content import load, named

pytestmark = pytest.mark.timeout(600)

WORKFLOW = named(load().workflows)["Correct drift"]


def launches(awx: Server, workflow: int) -> list[dict[str, Any]]:
    """Return the variables with which the workflow was launched."""
    path = f"/api/v2/workflow_job_templates/{workflow}/launch/"
    return [body["extra_vars"] for method, requested, body in awx.awx.writes if (method, requested) == ("POST", path)]


def test_drift_starts_one_workflow_per_pod(rulebook: Callable[..., Rulebook], tmp_path: Path) -> None:
    with Server(tmp_path, {}) as awx:
        send, port = Requests(awx), free_port()
        organization = send.made("organizations/", name=WORKFLOW["organization"])
        workflow = send.made("workflow_job_templates/", name=WORKFLOW["name"], organization=organization)
        token = send("POST", "tokens/", {"scope": "write"})[1]["token"]
        connection = ("--controller-url", awx.url, "--controller-token", token, "--controller-ssl-verify", str(awx.ca))
        target = {"event_drift_workflow": WORKFLOW["name"], "event_organization": WORKFLOW["organization"]}
        given = variables(tmp_path, port, **target)
        rules = rulebook("openipu.pod.drift", tmp_path, INVENTORY, options=connection, **given)
        listening(rules, port)
        for _ in range(5):
            assert post(port, {"kind": "drift", "pod": "twin", "summary": "{{ 2 }} changes"}) == 200
        assert post(port, {"kind": "other", "pod": "third", "summary": "1 change"}) == 200
        assert post(port, {"kind": "drift", "pod": "other", "summary": "1 change"}) == 200
        # The first workflow waits for its approval, and does not delay the second one.
        rules.until(lambda: len(launches(awx, workflow)) >= 2, "two launches")
        rules.stop()
        found = sorted((each["drift_pod"], each["drift_summary"]) for each in launches(awx, workflow))
        assert found == [("other", "1 change"), ("twin", "{ { 2 }} changes")]
        assert send("GET", "workflow_jobs/")[1]["count"] == 2
