# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of ``extensions/awx`` with a twin: its templates, its workflows, and credentials for the devices."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import psutil
import yaml

from openipu.shared.vipu.ports import CONTROLLER_PORT
from tests.integration.bringup.own_twin import OwnTwin
from tests.integration.vipu_servers import Process
from tests.integration.vipu_servers import run as run_server
from tests.unit.collection.awx.content import Content, load, named
from tools.ee.image import Image
from tools.ee.jobs import Controller, Job, Launch
from tools.ee.notifications import Notification, notifications
from tools.ee.workflow import Workflow, run_workflow

from .content import twin_credentials

SOURCE = "inventory/twin/pod.yml"
TEAM = "research"
ACCOUNT = "root"
HOSTS = "POD hosts"
# Hosts of the POD are the containers of their jobs, so changes of hosts end with the job.
VARIABLES = {
    "ansible_connection": "local",
    "ansible_become": False,
    "ansible_python_interpreter": "{{ ansible_playbook_python }}",
    "user_key_account": ACCOUNT,
    "user_key_folder": "/tmp/keys",
    "rack_report_folder": "/tmp/reports",
    "virm_agent_upgrade_versions": {"GWSW": "2.0.5"},  # installed on the machines of a twin
}


class SecureTwin:
    """A twin that no playbook has configured, and whose controller requires users and mutual TLS."""

    def __init__(self, twin: OwnTwin, folder: Path) -> None:
        self.twin = twin
        running = psutil.Process(twin.pid("controller"))
        running.terminate()
        running.wait(30)
        certs, database = folder / "certs", folder / "vipu-server.db"
        address = ("--tls-san", twin.controller)
        made = run_server("--tls-init", str(certs), *address, "--init", "--secure", "--database", str(database))
        assert made.returncode == 0, made.stderr
        files = {"ca": "ca.crt", "certificate": "client.crt", "client_key": "client.key"}
        inputs = {name: (certs / "client" / file).read_text() for name, file in files.items()}
        key = re.search('api-access-key="(.*)"', (folder / "admin.vipu-cli.hcl").read_text())
        assert key
        self.credential = {"user": "admin", "access_key": key[1], **inputs}
        options = ("--host", twin.controller, "--port", str(CONTROLLER_PORT))
        self.server = Process(
            *("--secure", "--certs", str(certs), "--database", str(database), *options),
            channel=grpc.ssl_channel_credentials(inputs["ca"].encode()),
        )

    def stop(self) -> None:
        """Stop the controller."""
        self.server.stop()


@dataclass
class Desk:
    """AWX with the content of the collection, which runs jobs in the image."""

    controller: Controller
    inputs: Mapping[str, Mapping[str, str]]  # credential -> its fields
    content: Content
    source: str = SOURCE
    local_hosts: bool = (
        True  # hosts are the containers of the jobs, which have no sudo: jobs that change them run as root
    )
    inventory: dict[str, Any] = field(init=False)
    started: list[str] = field(default_factory=list)  # names of the templates whose jobs ran
    sent: list[Notification] = field(default_factory=list)  # notifications of the jobs that ran
    ready: bool = False  # the controller has the objects of the POD

    def __post_init__(self) -> None:
        self.inventory = self.controller.update_inventory(self.source)
        self._credentials = named(self.content.credentials)

    @property
    def templates(self) -> dict[str, dict[str, Any]]:
        """Job templates by name."""
        return named(self.content.templates)

    def launch(self, name: str, launch: Launch | None = None) -> Job:
        """Run a job template with its credentials. The result contains no secret."""
        template = self.templates[name]
        credentials = [{**self._credentials[each], "inputs": self.inputs[each]} for each in template["credentials"]]
        root = self.local_hosts and HOSTS in template["credentials"]
        controller = replace(self.controller, user="0:0") if root else self.controller
        job = controller.run_template(template, self.inventory, credentials, launch)
        self.started.append(name)
        self.sent += notifications(named(self.content.notifications), template, job)
        returned = "".join(path.read_text(errors="replace") for path in job.folder.rglob("*") if path.is_file())
        for credential in credentials:
            for secret in self._secrets(credential):
                assert secret not in returned, f"{name} returns a secret of {credential['name']}"
        return job

    def _secrets(self, credential: Mapping[str, Any]) -> list[str]:
        """Return the secrets of a credential; of a PEM file, a line of its content."""
        kind = self.content.credential_type(credential["name"])
        fields = [each["id"] for each in kind["inputs"]["fields"] if each.get("secret")] if kind else []
        return [max(credential["inputs"][name].splitlines(), key=len) for name in fields]

    def run(self, template: str, *, job_type: str = "", user: str = "admin", **answers: Any) -> Job:
        """Run a job template that must succeed."""
        job = self.launch(template, Launch(answers=answers, job_type=job_type, user=user))
        assert job.status == "successful", job.stdout
        assert job.ignored == {}
        return job

    def reject(self, template: str, *, user: str = "admin", **answers: Any) -> str:
        """Run a job template that must fail, and return its output in one line."""
        job = self.launch(template, Launch(answers=answers, user=user))
        assert job.status == "failed", job.stdout
        return " ".join(job.stdout.split())

    def run_workflow(self, name: str, *, approved: bool = True, **answers: Any) -> Workflow:
        """Run a workflow, whose approvals are all given or all denied."""
        workflow, launch = named(self.content.workflows)[name], Launch(answers=answers)
        return run_workflow(workflow, self.launch, launch, approve=lambda _identifier: approved)


def remove_collection(project: Path) -> None:
    """Remove the collection from a project. It is in the image, with its roles."""
    for path in project.iterdir():
        if path.is_dir() and path.name not in ("inventory", "playbooks"):
            shutil.rmtree(path)


def make_desk(image: Image, project: Path, folder: Path, secure: SecureTwin) -> Desk:
    """Return an AWX for a twin. Credentials replace the variables of the inventory that contain some."""
    remove_collection(project)
    site = project / "inventory" / "twin"
    shutil.rmtree(site / "group_vars")
    (site / "group_vars").mkdir()
    (site / "group_vars" / "all.yml").write_text(yaml.safe_dump(VARIABLES))
    pod = site / "pod.yml"
    # Seven IPU-Machines have no allocation.
    pod.write_text(
        pod.read_text()
        .replace("{id: team-a, cluster: cl0, size: 8}", "{id: team-a, cluster: cl0, size: 4}")
        .replace("{id: team-b, cluster: cl0, size: 8}", "{id: team-b, cluster: cl0, size: 5}")
        + f"\nteams: [{{name: {TEAM}, ipus: 16}}]\n"
    )
    devices = {each["name"]: each["inputs"] for each in twin_credentials(secure.twin.state)}
    inputs = {
        **devices,
        "POD V-IPU controller": secure.credential,
        HOSTS: {"username": ACCOUNT, "become_method": "sudo"},
        "POD BMCs": {"username": "root", "password": "bmc-pass-phrase", "ca": devices["POD switches"]["ca"]},
    }
    content = load(awx_pod_file=SOURCE, awx_tenant_quota=TEAM)
    return Desk(Controller(image, project, folder, content.credential_types), inputs, content)
