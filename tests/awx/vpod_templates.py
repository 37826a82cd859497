# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in with the templates of vPODs, and a token."""

from __future__ import annotations

from pathlib import Path

from tests.awx.conftest import PROJECT
from tests.awx.requests import Requests
from tests.awx.standin.server import Server
from tests.unit.collection.awx.content import Content, named


def add(server: Server, content: Content) -> None:
    """Add the workflow and the job template of vPODs, with their surveys. The server has the project of conftest."""
    send = Requests(server)
    organization = send.made("organizations/", name="Lab")
    order = send.made("workflow_job_templates/", name="Order a vPOD", organization=organization, survey_enabled=True)
    spec = named(content.workflows)["Order a vPOD"]["survey_spec"]
    assert send("POST", f"workflow_job_templates/{order}/survey_spec/", spec)[0] == 200
    inventory = send.made("inventories/", name="Lab", organization=organization)
    project = send.made("projects/", name="Lab", organization=organization, scm_type="git", scm_url=PROJECT)
    update = send("GET", f"projects/{project}/")[1]["summary_fields"]["current_update"]["id"]
    assert send("GET", f"project_updates/{update}/")[1]["status"] == "successful"
    template = {"inventory": inventory, "project": project, "playbook": "site.yml", "survey_enabled": True}
    destroy = send.made("job_templates/", name="Destroy a vPOD", **template)
    spec = named(content.templates)["Destroy a vPOD"]["survey_spec"]
    assert send("POST", f"job_templates/{destroy}/survey_spec/", spec)[0] == 200


def token_file(server: Server, folder: Path) -> Path:
    """Return a file with a new token."""
    file = folder / "awx-token"
    file.touch(mode=0o600)
    file.write_text(Requests(server)("POST", "tokens/", {"scope": "write"})[1]["token"] + "\n")
    return file
