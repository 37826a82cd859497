# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles against a real OpenStack: what they make, and that they make it once."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.catalog_task import OPENSTACK_POD_CATALOG
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenancy_task import OPENSTACK_POD_PROJECT
from neutron_pod import run
from openstack.connection import Connection
from role_runs import play

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]


@pytest.fixture
def name(cloud: Path) -> Iterator[str]:
    """A name whose image, flavors, volume type, project and user go."""
    made = f"t{uuid.uuid4().hex[:6]}"
    yield made
    flavors = [{"name": f"{made}.1of{parts}"} for parts in (1, 4)]
    named = [[{"name": made}] for _ in range(4)]
    gone = run(task=OPENSTACK_POD_CATALOG, state="absent", images=named[0], flavors=flavors, volume_types=named[1])
    assert not gone.get("failed"), gone
    gone = run(task=OPENSTACK_POD_PROJECT, state="absent", projects=named[2], users=named[3])
    assert not gone.get("failed"), gone


def test_images(admin: Connection, name: str, tmp_path: Path) -> None:
    source = tmp_path / "there.raw"
    source.write_bytes(b"poplar" + bytes(1000))
    checksum = "sha256:" + hashlib.sha256(source.read_bytes()).hexdigest()
    asked = {
        "openstack_images": [{"name": name, "url": source.as_uri(), "checksum": checksum, "disk_format": "raw"}],
        "openstack_images_folder": str(tmp_path / "kept"),
    }
    assert play(tmp_path, "openstack_images", "--check", **asked) > 0
    assert admin.image.find_image(name) is None
    assert play(tmp_path, "openstack_images", **asked) == 3  # the folder, the file, the image
    source.unlink()
    (kept,) = (tmp_path / "kept").iterdir()
    kept.unlink()
    assert play(tmp_path, "openstack_images", **asked) == 0  # neither fetched nor read again
    found = admin.image.find_image(name)
    assert (found.visibility, found.disk_format) == ("private", "raw")
    assert admin.image.download_image(found).content.startswith(b"poplar")


def test_flavors(admin: Connection, name: str, tmp_path: Path) -> None:
    asked = {
        "openstack_flavors_prefix": name,
        "openstack_flavors_shares": [1, 4],
        "openstack_flavors_projects": ["tenant-a"],
        "openstack_flavors_pci_alias": "connectx-vf",
        "openstack_flavors_server": {"ephemeral": 7000},  # and the rest as usual
        "openstack_flavors_more": [],
    }
    assert play(tmp_path, "openstack_flavors", "--check", **asked) == 1
    assert play(tmp_path, "openstack_flavors", **asked) == 1
    assert play(tmp_path, "openstack_flavors", **asked) == 0
    found = admin.compute.find_flavor(f"{name}.1of4", get_extra_specs=True)
    assert (found.vcpus, found.ram, found.disk, found.ephemeral, found.is_public) == (56, 114688, 100, 1750, False)
    assert found.extra_specs == {
        "hw:cpu_policy": "dedicated",
        "hw:mem_page_size": "1GB",
        "hw:numa_nodes": "2",
        "pci_passthrough:alias": "connectx-vf:1",
    }


def test_volume_types_and_projects(admin: Connection, name: str, tmp_path: Path) -> None:
    types = {"openstack_volume_types": [{"name": name, "extra_specs": {"volume_backend_name": "nvme"}}]}
    assert play(tmp_path, "openstack_volume_types", **types) == 1
    assert play(tmp_path, "openstack_volume_types", **types) == 0
    assert admin.block_storage.find_type(name).extra_specs == {"volume_backend_name": "nvme"}
    projects = {
        "openstack_projects": [{"name": name, "quotas": {"compute": {"cores": 480}}}],
        "openstack_projects_users": [{"name": name, "password": "secret", "roles": [{"project": name}]}],
    }
    assert play(tmp_path, "openstack_projects", **projects) == 1
    assert play(tmp_path, "openstack_projects", **projects) == 0
    assert admin.compute.get_quota_set(admin.identity.find_project(name).id).cores == 480
