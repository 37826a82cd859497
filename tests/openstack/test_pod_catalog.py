# SPDX-License-Identifier: GPL-3.0-or-later
"""Images, flavors and volume types in a real Glance, Nova and Cinder."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.catalog.task import OPENSTACK_POD_CATALOG
from openstack.connection import Connection

from tests.openstack.neutron_pod import run

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


def catalog(**options: Any) -> dict[str, Any]:
    return run(task=OPENSTACK_POD_CATALOG, **options)


def digest(kind: str, content: bytes) -> str:
    return f"{kind}:{hashlib.new(kind, content).hexdigest()}"


@pytest.fixture
def options(admin: Connection, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Options with one object of each kind, which is removed afterwards."""
    name = f"t{uuid.uuid4().hex[:6]}"
    file = tmp_path / "poplar.raw"
    file.write_bytes(b"first" * 1000)
    options = {
        "images": [
            {
                "name": name,
                "file": str(file),
                "checksum": digest("sha256", file.read_bytes()),
                "disk_format": "raw",
                "min_disk": 1,
                "properties": {"hw_vif_multiqueue_enabled": True, "os_distro": "ubuntu"},
            }
        ],
        "flavors": [
            {
                "name": name,
                "vcpus": 8,
                "ram": 4096,
                "disk": 10,
                "ephemeral": 100,
                "public": False,
                "projects": ["tenant-a"],
                "extra_specs": {"hw:cpu_policy": "dedicated", "hw:numa_nodes": 1},
            }
        ],
        "volume_types": [{"name": name, "description": "fast", "extra_specs": {"volume_backend_name": "nvme"}}],
    }
    yield options
    deleted = catalog(state="absent", **options)
    assert not deleted.get("failed"), deleted
    assert admin.image.find_image(name) is None
    assert admin.compute.find_flavor(name) is None
    assert admin.block_storage.find_type(name) is None


@pytest.mark.parametrize("kind", ["sha256", "sha512"])
def test_creation_and_idempotence(admin: Connection, options: dict[str, Any], kind: str) -> None:
    image = options["images"][0]
    image["checksum"] = digest(kind, Path(image["file"]).read_bytes())
    predicted = run(check=True, diff=True, task=OPENSTACK_POD_CATALOG, **options)
    assert admin.image.find_image(image["name"]) is None
    created = run(diff=True, task=OPENSTACK_POD_CATALOG, **options)
    assert not created.get("failed"), created
    assert (created["changed"], created["diff"]) == (predicted["changed"], predicted["diff"])
    Path(image["file"]).unlink()  # not read again
    second = catalog(**options)
    assert not second["changed"], second
    assert not second.get("failed"), second
    assert (predicted["ids"], second["ids"]) == ({}, created["ids"])

    found = admin.image.find_image(image["name"])
    assert (found.min_disk, found.disk_format, found.status) == (1, "raw", "active")
    assert admin.image.get(f"/images/{found.id}").json()["hw_vif_multiqueue_enabled"] == "true"
    assert admin.image.download_image(found).content == b"first" * 1000
    flavor = admin.compute.find_flavor(image["name"], get_extra_specs=True)
    assert (flavor.vcpus, flavor.ram, flavor.ephemeral, flavor.is_public) == (8, 4096, 100, False)
    assert flavor.extra_specs == {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}
    tenant = admin.identity.find_project("tenant-a")
    assert [each["tenant_id"] for each in admin.compute.get_flavor_access(flavor)] == [tenant.id]
    volume_type = admin.block_storage.find_type(image["name"])
    assert volume_type.extra_specs == {"volume_backend_name": "nvme"}
    objects = {"images": found, "flavors": flavor, "volume_types": volume_type}
    assert created["ids"] == {kind: {image["name"]: each.id} for kind, each in objects.items()}


def test_differences_are_updated_or_recreated(admin: Connection, options: dict[str, Any]) -> None:
    assert not catalog(**options).get("failed")
    image, flavor, volume_type = options["images"][0], options["flavors"][0], options["volume_types"][0]
    before = admin.image.find_image(image["name"]).id
    image["properties"] = {"os_distro": "debian", "os_version": "12"}
    flavor.update(extra_specs={"hw:cpu_policy": "shared"}, projects=["tenant-b"])
    volume_type.update(description="faster", extra_specs={})
    changed = catalog(**options)
    assert not changed.get("failed"), changed
    assert [changed[kind]["updated"] for kind in ("images", "flavors", "volume_types")] == 3 * [[image["name"]]]
    assert not catalog(**options)["changed"]
    found = admin.image.find_image(image["name"])
    assert (found.id, found.os_distro, found.os_version) == (before, "debian", "12")

    # Image content and flavor size are immutable.
    file = Path(image["file"])
    file.write_bytes(b"second" * 1000)
    image["checksum"] = digest("sha256", file.read_bytes())
    del flavor["extra_specs"], flavor["projects"]  # omitted: the recreated flavor keeps them
    flavor["vcpus"] = 16
    recreated = catalog(**options)
    assert not recreated.get("failed"), recreated
    assert [recreated[kind]["recreated"] for kind in ("images", "flavors")] == 2 * [[image["name"]]]
    assert not catalog(**options)["changed"]
    assert admin.image.download_image(admin.image.find_image(image["name"])).content == b"second" * 1000
    found = admin.compute.find_flavor(image["name"], get_extra_specs=True)
    assert (found.vcpus, found.ram, found.extra_specs) == (16, 4096, {"hw:cpu_policy": "shared"})
    tenant = admin.identity.find_project("tenant-b")
    assert [each["tenant_id"] for each in admin.compute.get_flavor_access(found)] == [tenant.id]
    # Public: all projects have access.
    flavor["public"] = True
    assert catalog(**options)["flavors"]["recreated"] == [image["name"]]
    assert not catalog(**options)["changed"]


def test_a_wrong_file_is_rejected(admin: Connection, options: dict[str, Any]) -> None:
    image = options["images"][0]
    image["checksum"] = digest("sha256", b"something else")
    result = catalog(**options)
    assert f"Cannot create image '{image['name']}': the file {image['file']} has sha256:" in result["msg"]
    assert admin.image.find_image(image["name"]) is None
    assert admin.compute.find_flavor(image["name"]) is not None  # a rejected image does not block other objects
    image["checksum"] = "md5:123"
    assert "is not of the form sha256:DIGITS or sha512:DIGITS" in catalog(**options)["msg"]
    image.update(checksum=digest("sha256", b""), file="/nowhere")
    assert "cannot read the file /nowhere: No such file or directory" in catalog(**options)["msg"]
    result = catalog(flavors=[{"name": "new", "disk": 1}])
    assert result["msg"] == "Cannot create flavor 'new': a new flavor needs vcpus and ram. Set the missing options."
