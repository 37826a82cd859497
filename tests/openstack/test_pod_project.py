# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects of tenants in a real Keystone, Nova, Neutron and Cinder, and logins of their users."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.openstack.project.task import OPENSTACK_POD_PROJECT
from openstack.connection import Connection

from tests.openstack.neutron_pod import run

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


def run_project(**options: Any) -> dict[str, Any]:
    return run(task=OPENSTACK_POD_PROJECT, **options)


def new_key(folder: Path, name: str) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    return (folder / f"{name}.pub").read_text()


@pytest.fixture
def options(admin: Connection, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Options with a project and its user, which are removed afterwards."""
    name = f"team-{uuid.uuid4().hex[:6]}"
    options = {
        "projects": [
            {
                "name": name,
                "description": "a team",
                "quotas": {
                    "compute": {"cores": 48, "ram": 98304},
                    "network": {"port": 7},
                    "volume": {"gigabytes": 70},
                },
            }
        ],
        "users": [
            {
                "name": f"{name}-user",
                "password": "so secret",
                "default_project": name,
                "roles": [{"project": name}, {"project": name, "role": "reader"}],
                "key_pairs": [{"name": "laptop", "public_key": new_key(tmp_path, "one")}],
            }
        ],
    }
    yield options
    deleted = run_project(state="absent", **options)
    assert not deleted.get("failed"), deleted
    assert admin.identity.find_project(name) is None
    assert admin.identity.find_user(f"{name}-user") is None


def test_the_user_of_a_new_project_can_log_in(
    cloud: Path, admin: Connection, options: dict[str, Any], tmp_path: Path
) -> None:
    name = options["projects"][0]["name"]
    predicted = run(check=True, diff=True, task=OPENSTACK_POD_PROJECT, **options)
    assert admin.identity.find_project(name) is None
    created = run(diff=True, task=OPENSTACK_POD_PROJECT, **options)
    assert not created.get("failed"), created
    assert predicted["changed"]
    assert created["diff"] == predicted["diff"]
    assert "so secret" not in str(created)
    second = run_project(**options)
    assert not second["changed"]
    user_id = admin.identity.find_user(f"{name}-user", ignore_missing=False).id
    project_id = admin.identity.find_project(name, ignore_missing=False).id
    assert created["ids"] == {"projects": {name: project_id}, "users": {f"{name}-user": user_id}}
    assert (predicted["ids"], second["ids"]) == ({}, created["ids"])
    assert sorted(second["quotas"]["unchanged"]) == [
        f"{name}/compute/cores",
        f"{name}/compute/ram",
        f"{name}/network/port",
        f"{name}/volume/gigabytes",
    ]
    auth_url = yaml.safe_load((cloud / "clouds.yaml").read_text())["clouds"]["openipu"]["auth"]["auth_url"]
    user = openstack.connection.Connection(
        auth={
            "auth_url": auth_url,
            "username": f"{name}-user",
            "password": "so secret",
            "project_name": name,
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
        region_name="RegionOne",
        identity_api_version="3",
    )
    assert [pair.name for pair in user.compute.keypairs()] == ["laptop"]
    project = admin.identity.find_project(name)
    assert admin.compute.get_quota_set(project.id).cores == 48
    assert admin.network.get_quota(project.id).ports == 7
    assert admin.block_storage.get_quota_set(project.id).gigabytes == 70


def test_only_differences_are_updated(admin: Connection, options: dict[str, Any], tmp_path: Path) -> None:
    assert not run_project(**options).get("failed")
    project, user = options["projects"][0], options["users"][0]
    name = project["name"]
    project["quotas"] = {"compute": {"cores": 96, "instances": 3}}
    project["description"] = "a larger team"
    user["key_pairs"] = [
        {"name": "laptop", "public_key": new_key(tmp_path, "two")},
        {"name": "desk", "public_key": new_key(tmp_path, "three")},
    ]
    user["password"] = "another"
    result = run_project(**options)
    assert not result.get("failed"), result
    changes = {
        kind: {verb: keys for verb, keys in result[kind].items() if keys} for kind in ("projects", "users", "quotas")
    }
    assert changes == {
        "projects": {"updated": [name]},
        "users": {"unchanged": [f"{name}-user"]},
        "quotas": {"updated": [f"{name}/compute/cores", f"{name}/compute/instances"]},
    }
    assert result["key_pairs"]["recreated"] == [f"{name}-user/laptop"]
    assert result["key_pairs"]["created"] == [f"{name}-user/desk"]
    found = admin.compute.get_quota_set(admin.identity.find_project(name).id)
    assert (found.cores, found.ram, found.instances) == (96, 98304, 3)
    assert not run_project(**options)["changed"]


def test_a_role_is_revoked(admin: Connection, options: dict[str, Any]) -> None:
    name, user = options["projects"][0]["name"], options["users"][0]
    options["users"][0].pop("key_pairs")
    assert not run_project(**options).get("failed")
    user["roles"] = [{"project": name, "role": "reader", "state": "absent"}, {"project": name, "role": "member"}]
    predicted = run(check=True, diff=True, task=OPENSTACK_POD_PROJECT, **options)
    result = run(diff=True, task=OPENSTACK_POD_PROJECT, **options)
    assert result["grants"]["removed"] == [f"{name}-user/{name}/reader"]
    assert result["grants"]["unchanged"] == [f"{name}-user/{name}/member"]
    assert result["diff"] == predicted["diff"]
    assert list(result["diff"]["before"]) == ["grants"]
    query = {"user_id": admin.identity.find_user(f"{name}-user").id}
    remaining = [assignment.role["id"] for assignment in admin.identity.role_assignments(**query)]
    assert remaining == [admin.identity.find_role("member").id]
    assert not run_project(**options)["changed"]
    administrator = {"name": "admin", "roles": [{"project": "admin", "role": "admin", "state": "absent"}]}
    reported = run_project(users=[administrator])["msg"]
    cause = "the credentials of this task use it. Log in to another project to revoke it."
    assert reported == f"Cannot remove grant 'admin/admin/admin': {cause}"


def test_invalid_options_are_reported(admin: Connection, options: dict[str, Any]) -> None:
    options["users"][0]["roles"] = [{"project": options["projects"][0]["name"], "role": "king"}]
    assert "Cannot find role 'king' of user" in run_project(**options)["msg"]
    del options["users"][0]["roles"]
    assert not run_project(**options).get("failed")
    options["projects"][0]["quotas"] = {"compute": {"horses": 3}}
    assert "Cannot find compute quota 'horses' of project" in run_project(**options)["msg"]
    options["projects"][0]["quotas"] = {"compute": {"cores": "many"}}
    assert "'many' is not a number" in run_project(**options)["msg"]
    assert "Cannot find domain 'nowhere'" in run_project(domain="nowhere", projects=[{"name": "x"}])["msg"]
    options["projects"][0].pop("quotas")
    options["users"][0]["key_pairs"] = [{"name": "bad", "public_key": "ssh-rsa nonsense"}]
    result = run_project(**options)
    assert result["msg"].startswith(
        f"Cannot create key pair '{options['users'][0]['name']}/bad': Nova returned an error: "
    )
