# SPDX-License-Identifier: GPL-3.0-or-later
"""AWX's own command line works with the stand-in."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.awx.conftest import Applied
from tests.awx.requests import Requests
from tests.awx.runs import CLIENTS, environment


def _awx(applied: Applied, folder: Path, *arguments: str) -> Any:
    """Run AWX's command line with a token, and return its JSON output."""
    store = applied.server.awx.store
    if not store.find("tokens", description="command line"):
        token = Requests(applied.server)("POST", "tokens/", {"description": "command line", "scope": "write"})[1]
        folder.joinpath("token").write_text(token["token"])
    token = next(item["_token"] for item in store.all("tokens") if item["description"] == "command line")
    completed = subprocess.run(
        [CLIENTS / "bin/awx", "--conf.color", "false", *arguments, "-f", "json"],
        env={
            **environment(applied.server, folder, CONTROLLER_OAUTH_TOKEN=token),
            "REQUESTS_CA_BUNDLE": str(applied.server.ca),
            "PYTHONWARNINGS": "ignore",
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert completed.returncode == 0, completed.stdout[-2000:] + completed.stderr[-2000:]
    return json.loads(completed.stdout)


def test_command_line_of_awx_lists_objects(applied: Applied, tmp_path: Path) -> None:
    found = _awx(applied, tmp_path, "job_templates", "list", "--all")
    assert sorted(item["name"] for item in found["results"]) == ["Apply", "Order"]
    made = _awx(applied, tmp_path, "labels", "create", "--name", "from-awx", "--organization", "Lab")
    assert made["summary_fields"]["organization"]["name"] == "Lab"


def test_command_line_of_awx_exports_the_description(applied: Applied, tmp_path: Path) -> None:
    exported = _awx(applied, tmp_path, "export")
    assert [item["name"] for item in exported["job_templates"]] == ["Apply", "Order"]
    assert [item["name"] for item in exported["credential_types"]] == ["Controller"]
    order = exported["job_templates"][1]
    assert order["natural_key"]["organization"] == {"name": "Lab", "type": "organization"}
    assert order["project"]["name"] == "Lab"
    assert [q["variable"] for q in order["related"]["survey_spec"]["spec"]] == ["ipus", "size", "token"]
    nodes = {node["identifier"]: node for node in exported["workflow_job_templates"][0]["related"]["workflow_nodes"]}
    assert sorted(nodes) == ["again", "apply", "approval", "order"]
    assert [link["identifier"] for link in nodes["apply"]["related"]["success_nodes"]] == ["approval"]
    text = json.dumps(exported)
    for secret in ("key-of-the-lab", "password-of-mail", "token-of-orders"):
        assert secret not in text
