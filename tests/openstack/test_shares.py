# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares in a real Manila, whose backend only pretends to keep them; and a catalogue without it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.shares_task import OPENSTACK_POD_SHARE
from neutron_pod import run
from openstack.connection import Connection
from role_runs import play, printed

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]


def shares(check: bool = False, **options: Any) -> dict[str, Any]:
    return run(task=OPENSTACK_POD_SHARE, check=check, diff=True, **options)


@pytest.fixture
def name(cloud: Path) -> Iterator[str]:
    """A name of a type, and of a share of tenant-a; both go."""
    made = f"t{uuid.uuid4().hex[:6]}"
    yield made
    gone = shares(cloud="tenant-a", state="absent", shares=[{"name": made}])
    assert not gone.get("failed"), gone
    gone = shares(state="absent", share_types=[{"name": made}])
    assert not gone.get("failed"), gone


@pytest.fixture
def asked(name: str) -> dict[str, Any]:
    """The role's variables."""
    return {
        "openstack_shares_types": [
            {
                "name": name,
                "public": False,
                "projects": ["tenant-a"],
                "extra_specs": {"share_backend_name": "appliance", "snapshot_support": True},
            }
        ],
        "openstack_shares_tenant_connection": {"cloud": "tenant-a"},
        "openstack_shares_wanted": [
            {
                "name": name,
                "protocol": "NFS",
                "type": name,
                "size": 2,
                "access": [{"to": "10.1.6.0/24"}, {"to": "10.1.7.9", "level": "ro"}],
            }
        ],
    }


def test_the_role_makes_them_once(
    connect: Callable[[str], Connection], admin: Connection, name: str, asked: dict[str, Any], tmp_path: Path
) -> None:
    def there() -> list[Any]:
        return [share for share in connect("tenant-a").shared_file_system.shares() if share.name == name]

    assert play(tmp_path, "openstack_shares", "--check", **asked) == 2
    assert there() == []
    assert play(tmp_path, "openstack_shares", **asked) == 2
    assert play(tmp_path, "openstack_shares", **asked) == 0
    assert play(tmp_path, "openstack_shares", "--check", **asked) == 0
    (share,) = there()
    assert (share.status, share.size, share.share_protocol) == ("available", 2, "NFS")
    rules = connect("tenant-a").shared_file_system.access_rules(share)
    told = {(rule.access_to, rule.access_level, rule.state) for rule in rules}
    assert told == {("10.1.6.0/24", "rw", "active"), ("10.1.7.9", "ro", "active")}
    # A type that is not public is tenant-a's alone.
    for tenant, sees in (("tenant-a", True), ("tenant-b", False)):
        types = connect(tenant).shared_file_system.get("/types", microversion="2.50").json()["share_types"]
        assert (name in [found["name"] for found in types]) == sees


def test_what_differs_is_changed(name: str, asked: dict[str, Any]) -> None:
    (kind,), (share,) = asked["openstack_shares_types"], asked["openstack_shares_wanted"]
    assert not shares(share_types=[kind]).get("failed")
    made = shares(cloud="tenant-a", shares=[share])
    assert made["shares"]["created"] == [name], made
    assert made["details"][name]["status"] == "available"
    assert made["details"][name]["exports"]
    share.update(size=3, description="datasets", access=[{"to": "10.1.6.0/24", "level": "ro"}])
    foretold = shares(check=True, cloud="tenant-a", shares=[share])
    changed = shares(cloud="tenant-a", shares=[share])
    assert not changed.get("failed"), changed
    assert changed["diff"] == foretold["diff"]
    assert changed["shares"]["updated"] == [name]
    assert changed["access_rules"]["recreated"] == [f"{name}/ip/10.1.6.0/24"]
    assert changed["access_rules"]["removed"] == [f"{name}/ip/10.1.7.9"]
    kind.update(description="the appliance", extra_specs={"share_backend_name": "appliance"})
    assert shares(share_types=[kind])["share_types"]["updated"] == [name]
    for again in (shares(cloud="tenant-a", shares=[share]), shares(share_types=[kind])):
        assert not again["changed"], again
    # What is in it would be lost.
    refused = shares(cloud="tenant-a", shares=[{**share, "type": "another"}])
    assert refused["msg"].startswith(f"Share '{name}' has type {name} and cannot be changed to another: set recreate")


def test_what_cannot_be_made_says_why_and_is_made_anew(name: str, asked: dict[str, Any]) -> None:
    (kind,), (share,) = asked["openstack_shares_types"], asked["openstack_shares_wanted"]
    assert "a new share needs size and protocol." in shares(cloud="tenant-a", shares=[{"name": name}])["msg"]
    kind["extra_specs"] = {"share_backend_name": "nowhere"}
    assert not shares(share_types=[kind]).get("failed")
    failed = shares(cloud="tenant-a", shares=[share])
    assert failed["msg"].startswith(f"Cannot create share '{name}': it is in state error: "), failed
    assert "torage" in failed["msg"]  # what Manila told about the scheduling
    kind["extra_specs"] = {"share_backend_name": "appliance"}
    assert not shares(share_types=[kind]).get("failed")
    again = shares(cloud="tenant-a", shares=[share])
    assert again["shares"]["recreated"] == [name], again
    assert len(again["access_rules"]["created"]) == 2
    said = shares(share_types=[{"name": name, "extra_specs": {"driver_handles_share_servers": "true"}}])["msg"]
    assert said.endswith("has an option of its own: say share_servers instead.")


def test_a_type_made_anew_is_for_those_who_had_it(
    connect: Callable[[str], Connection], name: str, asked: dict[str, Any]
) -> None:
    (kind,) = asked["openstack_shares_types"]
    assert not shares(share_types=[kind]).get("failed")
    del kind["projects"]
    kind["share_servers"] = True
    anew = shares(share_types=[kind], recreate=True)
    assert anew["share_types"]["recreated"] == [name], anew
    assert not shares(share_types=[kind])["changed"]
    for tenant, sees in (("tenant-a", True), ("tenant-b", False)):
        types = connect(tenant).shared_file_system.get("/types", microversion="2.50").json()["share_types"]
        assert (name in [found["name"] for found in types]) == sees


def test_a_cloud_without_manila(admin: Connection, asked: dict[str, Any], tmp_path: Path) -> None:
    service = admin.identity.find_service("manila", ignore_missing=False)
    admin.identity.update_service(service, is_enabled=False)  # tokens to come know nothing of it
    try:
        told = printed(tmp_path, "openstack_shares", **asked)
        assert "The catalogue of the cloud has no Manila, so there are no shares." in told
        assert "changed=0" in told
        told = printed(tmp_path, "openstack_shares", fails=True, openstack_shares_required=True, **asked)
        assert "has no Manila, so there are no shares: let it be deployed, or say without_manila: skip." in told
    finally:
        admin.identity.update_service(service, is_enabled=True)
