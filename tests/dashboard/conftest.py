# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures with Horizon in the trial cloud, a secure V-IPU controller, an AWX and Chromium."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.awx import vpod_templates
from tests.awx.conftest import project
from tests.awx.standin.server import Server
from tests.browser.chromium import Browser, chromium, expect
from tests.integration.bringup.own_twin import OwnTwin
from tests.integration.cli.cli_support import Cli
from tests.openstack.conftest import (  # noqa: F401 - fixtures
    admin,
    cloud,
    command,
    connect,
    external,
    flavor_without_host,
    order,
    plan,
    play,
    secure_cli,
    twin,
    vlan,
)
from tests.openstack.secure_controller import ADMINISTRATOR, agents
from tests.unit.collection.awx.content import Content, load
from tests.workflow_jobs import HostJobs
from tools.openstack import dashboard
from tools.openstack.site import ADMIN_CLOUD, HOSTS

SCREENSHOTS = ROOT / "build/screenshots"
SECONDS = 30_000.0  # in milliseconds, as the browser counts them
TENANTS = ("tenant-a", "tenant-b")
TEAMS = {"a": {"ipus": 16, "project": "tenant-a"}}  # those of one order


@dataclass
class Panel:
    """Horizon with its panel, and the parts behind it."""

    url: str
    awx: Server
    jobs: HostJobs
    controller: Cli
    passwords: dict[str, str]
    folder: Path

    def launched(self, kind: str) -> list[dict[str, Any]]:
        """Return the launched jobs of a kind, the last one first."""
        return sorted(self.awx.awx.store.objects[kind].values(), key=lambda job: -job["id"])

    def listed(self, noun: str) -> list[dict[str, Any]]:
        """Return the objects of the controller."""
        found: list[dict[str, Any]] = self.controller.json(f"{ADMINISTRATOR} list {noun}")
        return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=SECONDS)
    with chromium() as started:
        yield started


@pytest.fixture
def content(order: dict[str, Any]) -> Content:  # noqa: F811
    """Content of the AWX, with the image and the flavor of the order."""
    choices = {"awx_vpod_images": [order["vpod_image"]], "awx_vpod_flavors": [order["vpod_flavor"]]}
    return load(**choices, awx_vpod_controller_vm=False)


@pytest.fixture
def secured(
    twin: OwnTwin,  # noqa: F811
    order: dict[str, Any],  # noqa: F811
    play: Callable[..., Any],  # noqa: F811
    secure_cli: Cli,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Cli:
    """Secure controller with the cluster of the twin, and one user without allocations per tenant."""
    key = (secure_cli.home / "admin.vipu-cli.hcl").read_text().split('api-access-key="')[1].split('"')[0]
    administrator = {"VIPU_CLI_API_USER_ID": "admin", "VIPU_CLI_API_ACCESS_KEY": key}
    for name, value in {**secure_cli.environment, **administrator}.items():
        if name.startswith("VIPU_CLI_"):
            monkeypatch.setenv(name, value)
    users = [{"id": tenant, "role": "user", "allocations": []} for tenant in TENANTS]
    order.update(vipu_users_folder=str(secure_cli.home / "users"), vipu_pod_users=users, vpod_user="{{ vpod_tenant }}")
    play("vipu_objects.yml")
    for agent in agents(secure_cli):
        secure_cli.out(f"{ADMINISTRATOR} take-over agent {agent}")
    play("users.yml")
    return secure_cli


@pytest.fixture
def panel(
    cloud: Path,  # noqa: F811
    connect: Callable[[str], Any],  # noqa: F811
    twin: OwnTwin,  # noqa: F811
    order: dict[str, Any],  # noqa: F811
    secured: Cli,
    content: Content,
    tmp_path: Path,
) -> Iterator[Panel]:
    """Horizon with credentials for both tenants and for operators, and with an AWX."""
    credentials = tmp_path / "credentials"
    credentials.mkdir(mode=0o700)
    shutil.copy(secured.home / "admin.vipu-cli.hcl", credentials / "operator.vipu-cli.hcl")
    for tenant in TENANTS:
        found = connect(ADMIN_CLOUD).identity.find_project(tenant, ignore_missing=False)
        shutil.copy(secured.home / "users" / f"{tenant}.vipu-cli.hcl", credentials / f"{found.id}.vipu-cli.hcl")
    with ExitStack() as stack:
        awx = stack.enter_context(Server(tmp_path, project(tmp_path)))
        vpod_templates.add(awx, content)
        token = vpod_templates.token_file(awx, tmp_path)
        setting = {"url": awx.url, "token_file": str(token), "ca_path": str(awx.ca), "poplar_servers": list(HOSTS)}
        pod = tmp_path / "pod.json"
        plans = {"teams": TEAMS, "tenants": order["pod_openstack_tenants"]}
        pod.write_text(json.dumps({"credentials": str(credentials), "awx": setting, **plans}))
        site = _start(cloud, pod)
        clouds = yaml.safe_load((cloud / "clouds.yaml").read_text())["clouds"]
        passwords = {each["auth"]["username"]: each["auth"]["password"] for each in clouds.values()}
        jobs = _jobs(twin, order, content, clouds[ADMIN_CLOUD], tmp_path)
        yield Panel(site, awx, jobs, secured, passwords, tmp_path)
        pod.write_text("{}")  # for a cloud that continues to run
        _start(cloud, pod)


def _start(state: Path, pod: Path) -> str:
    """Start Horizon with a setting, and return its address."""
    started = command("up", "--horizon", "--pod", str(pod), state=state)
    assert started.returncode == 0, started.stderr
    site = started.stdout.split("Horizon: ")[1].split()[0]
    assert site.endswith(f":{dashboard.PORT}/")
    return site


def _jobs(
    twin: OwnTwin,  # noqa: F811
    order: dict[str, Any],  # noqa: F811
    content: Content,
    settings: dict[str, Any],
    folder: Path,
) -> HostJobs:
    """Return the runner of the jobs of the AWX, with its credential of OpenStack."""
    credential = folder / "clouds.yaml"
    credential.write_text(yaml.safe_dump({"clouds": {"devstack": settings}}))
    environment = {name: value for name, value in os.environ.items() if name.startswith("VIPU_CLI_")}
    environment |= {"TWIN_STATE_DIR": str(twin.state), "OS_CLIENT_CONFIG_FILE": str(credential), "OS_CLOUD": "devstack"}
    answered = {name for name in order if name.startswith("vpod_") and name not in ("vpod_user", "vpod_controller_vm")}
    variables = {name: value for name, value in order.items() if name not in answered | {"openstack_connection"}}
    return HostJobs(folder, twin.inventory, variables, environment, content)
