# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles against a real OpenStack: their objects, and no change in the second run."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.catalog.task import OPENSTACK_POD_CATALOG
from ansible_collections.openipu.pod.plugins.module_utils.openstack.project.task import OPENSTACK_POD_PROJECT
from openstack.connection import Connection

from tests.openstack.neutron_pod import run
from tests.openstack.role_runs import changed_tasks

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


@pytest.fixture
def name(cloud: Path) -> Iterator[str]:
    """Name of an image, flavors, a volume type, a project and a user, which are removed afterwards."""
    created = f"t{uuid.uuid4().hex[:6]}"
    yield created
    flavors = [{"name": f"{created}.1of{parts}"} for parts in (1, 4)]
    objects = [[{"name": created}] for _ in range(4)]
    deleted = run(
        task=OPENSTACK_POD_CATALOG, state="absent", images=objects[0], flavors=flavors, volume_types=objects[1]
    )
    assert not deleted.get("failed"), deleted
    deleted = run(task=OPENSTACK_POD_PROJECT, state="absent", projects=objects[2], users=objects[3])
    assert not deleted.get("failed"), deleted


def test_images(admin: Connection, name: str, tmp_path: Path) -> None:
    source = tmp_path / "source.raw"
    source.write_bytes(b"poplar" + bytes(1000))
    checksum = "sha256:" + hashlib.sha256(source.read_bytes()).hexdigest()
    variables = {
        "openstack_images": [{"name": name, "url": source.as_uri(), "checksum": checksum, "disk_format": "raw"}],
        "openstack_images_folder": str(tmp_path / "downloads"),
    }
    assert changed_tasks(tmp_path, "openstack_images", "--check", **variables) > 0
    assert admin.image.find_image(name) is None
    assert changed_tasks(tmp_path, "openstack_images", **variables) == 3  # the folder, the file, the image
    source.unlink()
    (downloaded,) = (tmp_path / "downloads").iterdir()
    downloaded.unlink()
    assert changed_tasks(tmp_path, "openstack_images", **variables) == 0  # neither fetched nor read again
    found = admin.image.find_image(name)
    assert (found.visibility, found.disk_format) == ("private", "raw")
    assert admin.image.download_image(found).content.startswith(b"poplar")


def test_flavors(admin: Connection, name: str, tmp_path: Path) -> None:
    variables = {
        "openstack_flavors_prefix": name,
        "openstack_flavors_shares": [1, 4],
        "openstack_flavors_projects": ["tenant-a"],
        "openstack_flavors_pci_alias": "connectx-vf",
        "openstack_flavors_server": {"ephemeral": 7000},  # and defaults for the rest
        "openstack_flavors_more": [],
    }
    assert changed_tasks(tmp_path, "openstack_flavors", "--check", **variables) == 1
    assert changed_tasks(tmp_path, "openstack_flavors", **variables) == 1
    assert changed_tasks(tmp_path, "openstack_flavors", **variables) == 0
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
    assert changed_tasks(tmp_path, "openstack_volume_types", **types) == 1
    assert changed_tasks(tmp_path, "openstack_volume_types", **types) == 0
    assert admin.block_storage.find_type(name).extra_specs == {"volume_backend_name": "nvme"}
    projects = {
        "openstack_projects": [{"name": name, "quotas": {"compute": {"cores": 480}}}],
        "openstack_projects_users": [{"name": name, "password": "secret", "roles": [{"project": name}]}],
    }
    assert changed_tasks(tmp_path, "openstack_projects", **projects) == 1
    assert changed_tasks(tmp_path, "openstack_projects", **projects) == 0
    assert admin.compute.get_quota_set(admin.identity.find_project(name).id).cores == 480
