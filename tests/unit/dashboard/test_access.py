# SPDX-License-Identifier: GPL-3.0-or-later
"""Access of tenants: rights, foreign objects, running jobs, and messages. The AWX is the stand-in."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from openipu.dashboard import access
from openipu.dashboard.access import Operator, Tenant
from openipu.dashboard.controller import ControllerError
from openipu.dashboard.orders import Flavor, OrderError, Usage
from openipu.dashboard.ownership import Objects, Project
from openipu.dashboard.settings import Settings, SettingsError, parse
from openipu.shared.reconcile import UserError
from tests.awx import vpod_templates
from tests.awx.conftest import start  # noqa: F401 - a fixture
from tests.awx.standin.server import Server
from tests.unit.collection.awx.content import load

ANSWERS = {
    "vpod_name": "red",
    "vpod_ipus": "16",
    "vpod_poplar_server": "server1",
    "vpod_image": "poplar",
    "vpod_flavor": "vpod.poplar",
    "vpod_public_keys": "ssh-ed25519 AAAA alice@example",
}
PROJECT = Project("a1", "research", ("blue",))
OBJECTS = Objects([{"id": "blue", "agents": ["ag01"]}], [{"id": "blue", "allocation": "blue"}])


@dataclass
class Cloud:
    """OpenStack with these values."""

    project: Project = PROJECT
    domain_id: str = "default"
    roles: list[str] = field(default_factory=lambda: ["member", "reader"])
    allowed: bool = True
    used: dict[str, Usage] = field(default_factory=dict)

    @property
    def project_id(self) -> str:
        return self.project.id

    def projects(self) -> list[Project]:
        return [self.project]

    def allows_changes(self) -> bool:
        return self.allowed

    def flavors(self) -> dict[str, Flavor]:
        return {"vpod.poplar": Flavor(4, 8), "other": Flavor(1, 1)}

    def keys(self) -> dict[str, str]:
        return {}

    def usages(self) -> dict[str, Usage]:
        return self.used


@pytest.fixture
def server(start: Callable[[], Server]) -> Iterator[Server]:  # noqa: F811
    """Stand-in with the workflow and the job template of vPODs."""
    started = start()
    vpod_templates.add(started, load())
    yield started


@pytest.fixture
def setting(server: Server, tmp_path: Path) -> dict[str, Any]:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    token = str(vpod_templates.token_file(server, tmp_path))
    awx = {"url": server.url, "token_file": token, "poplar_servers": ["server1"], "ca_path": str(server.ca)}
    return {"credentials": str(credentials), "awx": awx}


def jobs(server: Server, kind: str = "workflow_jobs") -> list[dict[str, Any]]:
    return list(server.awx.store.objects[kind].values())


def rejected(call: Callable[[], object]) -> str:
    with pytest.raises(UserError) as raised:
        call()
    return raised.value.message


def with_objects(setting: dict[str, Any], cloud: Cloud) -> Tenant:
    found = access.tenant(setting, cloud)
    found.objects = OBJECTS
    return found


READERS = [
    Cloud(roles=["reader"]),
    Cloud(roles=[]),
    Cloud(allowed=False),
    Cloud(domain_id="other"),
]


@pytest.mark.parametrize("cloud", READERS)
def test_readers_change_nothing(server: Server, setting: dict[str, Any], cloud: Cloud) -> None:
    tenant = with_objects(setting, cloud)
    assert not tenant.may_order and not tenant.may_release("blue")
    for call in (lambda: tenant.order(ANSWERS), lambda: tenant.release("blue"), lambda: tenant.survey):
        assert rejected(call) == "You may not order or release vPODs in this project. Ask the operator of the POD."
    assert "You may not order" in rejected(tenant.listed_orders)
    assert (jobs(server), jobs(server, "jobs")) == ([], [])


@pytest.mark.parametrize("cloud", READERS[:3])
def test_readers_remove_no_partition(setting: dict[str, Any], cloud: Cloud) -> None:
    assert "no such partition" in rejected(lambda: with_objects(setting, cloud).remove_partition("blue"))


def test_members_change_their_own_objects_only(server: Server, setting: dict[str, Any]) -> None:
    tenant = with_objects(setting, Cloud())
    assert "this project has no such vPOD" in rejected(lambda: tenant.release("green"))
    assert not tenant.may_release("green")
    assert "this project has no such partition" in rejected(lambda: tenant.remove_partition("green"))
    # The own one needs the credentials of the project, which are missing here.
    assert "This project has no access to a V-IPU controller." in rejected(lambda: tenant.remove_partition("blue"))
    tenant.order({**ANSWERS, "vpod_tenant": "other", "vpod_tenant_id": "a2"})
    variables = json.loads(jobs(server)[0]["extra_vars"])
    assert (variables["vpod_tenant"], variables["vpod_tenant_id"]) == ("research", "a1")


def test_a_project_of_the_same_name_has_other_orders(server: Server, setting: dict[str, Any]) -> None:
    access.tenant(setting, Cloud(Project("a1", "research", ()))).order({**ANSWERS, "vpod_name": "blue"})
    other = access.tenant(setting, Cloud(Project("a2", "research", ("blue",))))
    assert other.listed_orders() == []
    assert other.may_release("blue"), "the order of the other project does not delay it"
    other.release("blue")
    [release] = jobs(server, "jobs")
    assert json.loads(release["extra_vars"])["vpod_tenant_id"] == "a2"
    assert [order.action for order in access.tenant(setting, Cloud()).listed_orders()] == ["Order"]


TEAMS = {"red": {"ipus": 16, "project": "research"}}


def with_teams(setting: dict[str, Any], allocations: dict[str, int], **more: Any) -> Tenant:
    """Return the access of a project with these allocations, whose numbers of machines are given.

    Each is that of a vPOD, except for the allocation fixed.
    """
    vpods = tuple(name for name in allocations if name != "fixed")
    tenant = with_objects({**setting, "teams": TEAMS, **more}, Cloud(Project("a1", "research", vpods)))
    tenant.objects = Objects([{"id": id, "agents": ["ag"] * count} for id, count in allocations.items()], [])
    return tenant


def test_an_order_beyond_the_quota_of_the_team_is_rejected(server: Server, setting: dict[str, Any]) -> None:
    tenant = with_teams(setting, {"blue": 1})
    assert tenant.ipu_usage == Usage(16, 4)
    assert rejected(lambda: tenant.order({**ANSWERS, "vpod_ipus": "16"})) == (
        "Cannot order vPOD 'red' within the quotas of the project: it needs 16 IPUs more (quota 16, used 4). "
        "Order less."
    )
    assert jobs(server) == []
    tenant.order({**ANSWERS, "vpod_ipus": "8"})
    assert len(jobs(server)) == 1


def test_pending_orders_count_against_the_quota_of_the_team(server: Server, setting: dict[str, Any]) -> None:
    with_teams(setting, {"blue": 1}).order({**ANSWERS, "vpod_ipus": "8"})
    message = rejected(lambda: with_teams(setting, {"blue": 1}).order({**ANSWERS, "vpod_name": "g", "vpod_ipus": "8"}))
    assert "it needs 16 IPUs more with 1 pending (quota 16, used 4)" in message
    # The pending order of 2 machines has its allocation.
    with_teams(setting, {"blue": 1, "red": 2}).order({**ANSWERS, "vpod_name": "g", "vpod_ipus": "1"})
    assert len(jobs(server)) == 2


@pytest.mark.parametrize(
    ("allocations", "tenants"),
    [({"fixed": 4}, {}), ({}, {"research": {"allocation": "fixed"}})],
)
def test_an_allocation_in_the_pod_limits_its_tenant(
    server: Server, setting: dict[str, Any], allocations: dict[str, int], tenants: dict[str, Any]
) -> None:
    with_teams(setting, allocations, tenants=tenants).order({**ANSWERS, "vpod_ipus": "32"})
    assert len(jobs(server)) == 1


@pytest.mark.parametrize("cloud", [Cloud(Project("a1", "other", ())), Cloud(domain_id="other")])
def test_projects_without_a_team_have_no_quota(setting: dict[str, Any], cloud: Cloud) -> None:
    assert with_objects({**setting, "teams": TEAMS}, cloud).ipu_usage is None


def test_an_order_needs_the_use_of_its_quota(server: Server, setting: dict[str, Any]) -> None:
    without_credentials = access.tenant({**setting, "teams": TEAMS}, Cloud())
    assert "This project has no access to a V-IPU controller." in rejected(lambda: without_credentials.order(ANSWERS))
    assert jobs(server) == []


def test_a_storage_network_of_the_tenant_needs_a_port(server: Server, setting: dict[str, Any]) -> None:
    cloud = Cloud(used={"port": Usage(2, 0)})
    tenants = {"*": {"storage": {"network": "pod-storage"}}}
    message = rejected(lambda: access.tenant({**setting, "tenants": tenants}, cloud).order(ANSWERS))
    assert "it needs 3 ports more (quota 2, used 0)" in message
    access.tenant({**setting, "tenants": {**tenants, "research": {}}}, cloud).order(ANSWERS)
    assert len(jobs(server)) == 1


def test_roles_of_changes_are_a_setting(setting: dict[str, Any]) -> None:
    assert access.tenant(setting, Cloud(roles=["Member"])).may_change, "Keystone compares names without their case"
    assert not access.tenant({**setting, "roles": ["tenant"]}, Cloud()).may_change
    assert access.tenant({**setting, "roles": ["tenant"]}, Cloud(roles=["tenant"])).may_change


def test_a_vpod_with_a_running_job_is_not_released(server: Server, setting: dict[str, Any]) -> None:
    access.tenant(setting, Cloud(Project("a1", "research", ()))).order({**ANSWERS, "vpod_name": "blue"})
    tenant = access.tenant(setting, Cloud())
    assert not tenant.may_release("blue")
    assert "has not ended" in rejected(lambda: tenant.release("blue"))
    assert jobs(server, "jobs") == []
    jobs(server)[0]["status"] = "successful"
    tenant = access.tenant(setting, Cloud())
    assert tenant.may_release("blue")
    tenant.release("blue")
    for again in (tenant, access.tenant(setting, Cloud())):
        assert "has not ended" in rejected(lambda again=again: again.release("blue"))
    assert len(jobs(server, "jobs")) == 1


def test_unfinished_jobs_without_an_id_block_the_project_of_their_name(server: Server, setting: dict[str, Any]) -> None:
    """Operators launch jobs in AWX without the ID, which is optional there. Jobs before the upgrade have none."""
    access.tenant(setting, Cloud()).order(ANSWERS)
    [job] = jobs(server)
    variables = {**json.loads(job["extra_vars"]), "vpod_name": "blue"}
    del variables["vpod_tenant_id"]
    job["extra_vars"] = json.dumps(variables)
    tenant = access.tenant(setting, Cloud())
    assert tenant.listed_orders() == [], "it may be an order of another project of this name"
    assert not tenant.may_release("blue")
    assert "has not ended" in rejected(lambda: tenant.release("blue"))
    assert jobs(server, "jobs") == []

    def order(name: str, id: str = "a1", project: str = "research", **used: Usage) -> None:
        access.tenant(setting, Cloud(Project(id, project, ()), used=used)).order({**ANSWERS, "vpod_name": name})

    assert "this project has one of this name" in rejected(lambda: order("blue"))
    assert "8 vCPUs more with 1 pending" in rejected(lambda: order("red", cores=Usage(7, 0)))
    order("red")
    order("green")
    assert "3 orders of this project have not ended" in rejected(lambda: order("grey"))
    order("blue", "a2", "other")

    job["extra_vars"] = json.dumps({**variables, "vpod_tenant_id": ""})  # an empty answer in AWX
    assert not access.tenant(setting, Cloud()).may_release("blue")
    job["status"] = "failed"
    access.tenant(setting, Cloud()).release("blue")


def test_a_release_needs_the_question_for_the_id(server: Server, setting: dict[str, Any]) -> None:
    """The content of AWX may be older than the panel. A job without the ID would not be listed."""
    [template] = server.awx.store.objects["job_templates"].values()
    questions = template["_survey"]["spec"]
    template["_survey"]["spec"] = [each for each in questions if each["variable"] != "vpod_tenant_id"]
    message = rejected(lambda: access.tenant(setting, Cloud()).release("blue"))
    assert message == "Cannot use the service for orders. Try again, or ask the operator of the POD."
    assert jobs(server, "jobs") == []
    template["_survey"]["spec"] = questions
    access.tenant(setting, Cloud()).release("blue")
    assert len(jobs(server, "jobs")) == 1


def test_pending_orders_need_quotas_and_are_limited(server: Server, setting: dict[str, Any]) -> None:
    def order(name: str, **used: Usage) -> None:
        access.tenant(setting, Cloud(used=used)).order({**ANSWERS, "vpod_name": name})

    order("red", cores=Usage(4, 0))
    assert "8 vCPUs more with 1 pending" in rejected(lambda: order("green", cores=Usage(7, 0)))
    order("green", cores=Usage(8, 0))
    order("lime")
    assert "3 orders of this project have not ended" in rejected(lambda: order("grey"))
    assert "this project has one of this name" in rejected(lambda: order("red"))
    jobs(server)[0]["status"] = "failed"
    order("grey")
    assert len(jobs(server)) == 4


def test_flavors_outside_of_the_survey_are_not_ordered(server: Server, setting: dict[str, Any]) -> None:
    assert "is not offered" in rejected(
        lambda: access.tenant(setting, Cloud()).order({**ANSWERS, "vpod_flavor": "other"})
    )
    assert jobs(server) == []


def test_tenants_get_no_details_of_services(
    server: Server, setting: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    broken = {**setting, "awx": {**setting["awx"], "ca_path": ""}}
    with caplog.at_level(logging.WARNING):
        for call in (access.tenant(broken, Cloud()).listed_orders, lambda: access.tenant(broken, Cloud()).survey):
            assert rejected(call) == "Cannot use the service for orders. Try again, or ask the operator of the POD."
    assert server.url in caplog.text, "the log has the details"
    assert not access.tenant(broken, Cloud()).may_release("blue")
    with pytest.raises(SettingsError) as raised:
        access.tenant({"awx": 1}, Cloud())
    assert raised.value.message == "This panel is not configured correctly. Ask the operator of the POD."


def test_unreadable_credentials_are_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A name that is too long is an error for root too, whom modes do not stop."""
    folder = str(tmp_path / ("x" * 300))
    message = rejected(lambda: Tenant(Settings(folder), Cloud()).objects)
    assert message == "Cannot use the V-IPU controller. Try again, or ask the operator of the POD."
    assert folder in caplog.text
    with pytest.raises(ControllerError) as raised:
        _ = Operator(parse({"credentials": folder}), Cloud()).objects
    assert f"Cannot read {folder}/operator.vipu-cli.hcl: File name too long." in raised.value.message
    assert isinstance(rejected(Operator(Settings(), Cloud()).report), str)


def test_errors_of_the_controller_have_no_path(tmp_path: Path) -> None:
    (tmp_path / "a1.vipu-cli.hcl").write_text("{")
    tenant = Tenant(Settings(str(tmp_path)), Cloud())
    assert str(tmp_path) not in rejected(lambda: tenant.objects)


def test_orders_need_an_awx(tmp_path: Path) -> None:
    with pytest.raises(OrderError):
        Tenant(Settings(str(tmp_path)), Cloud()).release("blue")
