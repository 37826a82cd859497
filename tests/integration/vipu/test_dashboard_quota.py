# SPDX-License-Identifier: GPL-3.0-or-later
"""Quota in IPUs of the panel of Horizon: vPODs of a project and orders of its team, at a real controller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from openipu.dashboard.access import Tenant
from openipu.dashboard.orders import Usage
from openipu.dashboard.ownership import Project
from openipu.dashboard.settings import parse
from openipu.shared.reconcile import UserError
from tests.integration.vipu_servers import InProcess, InstantLife, pod
from tests.unit.dashboard.test_access import Cloud

TEAMS = {"red": {"ipus": 32, "project": "research"}, "red2": {"ipus": 4}}


@pytest.fixture
def credentials(vipu_server: Callable[..., InProcess], tmp_path: Path) -> Path:
    """Folder with credentials of the project, for a controller with vPODs and orders."""
    server = vipu_server(life=InstantLife)
    # red2.own belongs to another team, redhat to none.
    pod(server, machines=8, allocations={"blue": 1, "red.job": 2, "red.x.y": 1, "red2.own": 1, "redhat": 1, "green": 1})
    host, port = server.address.rsplit(":", 1)
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "a1.vipu-cli.hcl").write_text(f'api-host = "{host}"\napi-port = {port}\n')
    return folder


def tenant(credentials: Path, name: str = "research") -> Tenant:
    return Tenant(parse({"credentials": str(credentials), "teams": TEAMS}), Cloud(Project("a1", name, ("blue",))))


def test_orders_of_the_team_count_against_its_quota(credentials: Path) -> None:
    operator = credentials / "operator.vipu-cli.hcl"
    operator.write_text((credentials / "a1.vipu-cli.hcl").read_text())
    assert tenant(credentials).ipu_usage == Usage(32, 4 + 12)
    assert tenant(credentials, "other").ipu_usage is None
    assert [each["id"] for each in tenant(credentials).objects.allocations] == ["blue"], "the tenant sees no orders"


def test_orders_are_not_counted_without_the_credentials_of_operators(credentials: Path) -> None:
    assert tenant(credentials).ipu_usage == Usage(32, 4)


def test_unusable_credentials_of_operators_are_an_error(credentials: Path) -> None:
    (credentials / "operator.vipu-cli.hcl").write_text("{")
    with pytest.raises(UserError) as raised:
        _ = tenant(credentials).ipu_usage
    assert raised.value.message == "Cannot use the V-IPU controller. Try again, or ask the operator of the POD."
