# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects for tenants, made in a real Keystone, Nova, Neutron and Cinder, and logged in to."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenancy_task import OPENSTACK_POD_PROJECT
from neutron_pod import run
from openstack.connection import Connection

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]


def tenancy(**options: Any) -> dict[str, Any]:
    return run(task=OPENSTACK_POD_PROJECT, **options)


def new_key(folder: Path, name: str) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    return (folder / f"{name}.pub").read_text()


@pytest.fixture
def asked(admin: Connection, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A team of one, and nothing of it is left."""
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
    gone = tenancy(state="absent", **options)
    assert not gone.get("failed"), gone
    assert admin.identity.find_project(name) is None
    assert admin.identity.find_user(f"{name}-user") is None


def test_a_team_is_let_in(cloud: Path, admin: Connection, asked: dict[str, Any], tmp_path: Path) -> None:
    name = asked["projects"][0]["name"]
    foretold = run(check=True, diff=True, task=OPENSTACK_POD_PROJECT, **asked)
    assert admin.identity.find_project(name) is None
    made = run(diff=True, task=OPENSTACK_POD_PROJECT, **asked)
    assert not made.get("failed"), made
    assert foretold["changed"]
    assert made["diff"] == foretold["diff"]
    assert "so secret" not in str(made)
    again = tenancy(**asked)
    assert not again["changed"]
    assert sorted(again["quotas"]["unchanged"]) == [
        f"{name}/compute/cores",
        f"{name}/compute/ram",
        f"{name}/network/port",
        f"{name}/volume/gigabytes",
    ]
    where = yaml.safe_load((cloud / "clouds.yaml").read_text())["clouds"]["openipu"]["auth"]["auth_url"]
    user = openstack.connection.Connection(
        auth={
            "auth_url": where,
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


def test_what_differs_is_changed_and_the_rest_left_alone(
    admin: Connection, asked: dict[str, Any], tmp_path: Path
) -> None:
    assert not tenancy(**asked).get("failed")
    project, user = asked["projects"][0], asked["users"][0]
    name = project["name"]
    project["quotas"] = {"compute": {"cores": 96, "instances": 3}}
    project["description"] = "a larger team"
    user["key_pairs"] = [
        {"name": "laptop", "public_key": new_key(tmp_path, "two")},
        {"name": "desk", "public_key": new_key(tmp_path, "three")},
    ]
    user["password"] = "another"
    result = tenancy(**asked)
    assert not result.get("failed"), result
    told = {
        kind: {verb: keys for verb, keys in result[kind].items() if keys} for kind in ("projects", "users", "quotas")
    }
    assert told == {
        "projects": {"updated": [name]},
        "users": {"unchanged": [f"{name}-user"]},
        "quotas": {"updated": [f"{name}/compute/cores", f"{name}/compute/instances"]},
    }
    assert result["key_pairs"]["recreated"] == [f"{name}-user/laptop"]
    assert result["key_pairs"]["created"] == [f"{name}-user/desk"]
    found = admin.compute.get_quota_set(admin.identity.find_project(name).id)
    assert (found.cores, found.ram, found.instances) == (96, 98304, 3)
    assert not tenancy(**asked)["changed"]


def test_a_role_is_taken_back(admin: Connection, asked: dict[str, Any]) -> None:
    name, user = asked["projects"][0]["name"], asked["users"][0]
    asked["users"][0].pop("key_pairs")
    assert not tenancy(**asked).get("failed")
    user["roles"] = [{"project": name, "role": "reader", "state": "absent"}, {"project": name, "role": "member"}]
    foretold = run(check=True, diff=True, task=OPENSTACK_POD_PROJECT, **asked)
    result = run(diff=True, task=OPENSTACK_POD_PROJECT, **asked)
    assert result["grants"]["removed"] == [f"{name}-user/{name}/reader"]
    assert result["grants"]["unchanged"] == [f"{name}-user/{name}/member"]
    assert result["diff"] == foretold["diff"]
    assert list(result["diff"]["before"]) == ["grants"]
    query = {"user_id": admin.identity.find_user(f"{name}-user").id}
    left = [found.role["id"] for found in admin.identity.role_assignments(**query)]
    assert left == [admin.identity.find_role("member").id]
    assert not tenancy(**asked)["changed"]
    own = {"name": "admin", "roles": [{"project": "admin", "role": "admin", "state": "absent"}]}
    refused = tenancy(users=[own])["msg"]
    sentence = "this is asked by that role: log in to another project to take it back."
    assert refused == f"Cannot remove grant 'admin/admin/admin': {sentence}"


def test_mistakes_are_sentences(admin: Connection, asked: dict[str, Any]) -> None:
    asked["users"][0]["roles"] = [{"project": asked["projects"][0]["name"], "role": "king"}]
    assert "There is no role 'king' for user" in tenancy(**asked)["msg"]
    del asked["users"][0]["roles"]
    assert not tenancy(**asked).get("failed")
    asked["projects"][0]["quotas"] = {"compute": {"horses": 3}}
    assert "There is no compute quota 'horses' for project" in tenancy(**asked)["msg"]
    asked["projects"][0]["quotas"] = {"compute": {"cores": "many"}}
    assert "is 'many', which is no number" in tenancy(**asked)["msg"]
    assert "There is no domain 'nowhere'" in tenancy(domain="nowhere", projects=[{"name": "x"}])["msg"]
    asked["projects"][0].pop("quotas")
    asked["users"][0]["key_pairs"] = [{"name": "bad", "public_key": "ssh-rsa nonsense"}]
    result = tenancy(**asked)
    assert result["msg"].startswith(f"Cannot create key pair '{asked['users'][0]['name']}/bad': Nova says: ")
