# SPDX-License-Identifier: GPL-3.0-or-later
"""Images, flavors and volume types in a real Glance, Nova and Cinder."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.catalog_task import OPENSTACK_POD_CATALOG
from neutron_pod import run
from openstack.connection import Connection

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]


def catalog(**options: Any) -> dict[str, Any]:
    return run(task=OPENSTACK_POD_CATALOG, **options)


def digest(kind: str, content: bytes) -> str:
    return f"{kind}:{hashlib.new(kind, content).hexdigest()}"


@pytest.fixture
def asked(admin: Connection, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """One of each, of which nothing is left."""
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
    gone = catalog(state="absent", **options)
    assert not gone.get("failed"), gone
    assert admin.image.find_image(name) is None
    assert admin.compute.find_flavor(name) is None
    assert admin.block_storage.find_type(name) is None


@pytest.mark.parametrize("kind", ["sha256", "sha512"])
def test_once_and_again(admin: Connection, asked: dict[str, Any], kind: str) -> None:
    image = asked["images"][0]
    image["checksum"] = digest(kind, Path(image["file"]).read_bytes())
    foretold = run(check=True, diff=True, task=OPENSTACK_POD_CATALOG, **asked)
    assert admin.image.find_image(image["name"]) is None
    made = run(diff=True, task=OPENSTACK_POD_CATALOG, **asked)
    assert not made.get("failed"), made
    assert (made["changed"], made["diff"]) == (foretold["changed"], foretold["diff"])
    Path(image["file"]).unlink()  # it is there already
    again = catalog(**asked)
    assert not again["changed"], again
    assert not again.get("failed"), again

    found = admin.image.find_image(image["name"])
    assert (found.min_disk, found.disk_format, found.status) == (1, "raw", "active")
    assert admin.image.get(f"/images/{found.id}").json()["hw_vif_multiqueue_enabled"] == "true"
    assert admin.image.download_image(found).content == b"first" * 1000
    flavor = admin.compute.find_flavor(image["name"], get_extra_specs=True)
    assert (flavor.vcpus, flavor.ram, flavor.ephemeral, flavor.is_public) == (8, 4096, 100, False)
    assert flavor.extra_specs == {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}
    tenant = admin.identity.find_project("tenant-a")
    assert [each["tenant_id"] for each in admin.compute.get_flavor_access(flavor)] == [tenant.id]
    assert admin.block_storage.find_type(image["name"]).extra_specs == {"volume_backend_name": "nvme"}


def test_what_differs_is_changed_or_made_anew(admin: Connection, asked: dict[str, Any]) -> None:
    assert not catalog(**asked).get("failed")
    image, flavor, volume_type = asked["images"][0], asked["flavors"][0], asked["volume_types"][0]
    before = admin.image.find_image(image["name"]).id
    image["properties"] = {"os_distro": "debian", "os_version": "12"}
    flavor.update(extra_specs={"hw:cpu_policy": "shared"}, projects=["tenant-b"])
    volume_type.update(description="faster", extra_specs={})
    changed = catalog(**asked)
    assert not changed.get("failed"), changed
    assert [changed[kind]["updated"] for kind in ("images", "flavors", "volume_types")] == 3 * [[image["name"]]]
    assert not catalog(**asked)["changed"]
    found = admin.image.find_image(image["name"])
    assert (found.id, found.os_distro, found.os_version) == (before, "debian", "12")

    # Other bytes and another size are another image and another flavor.
    file = Path(image["file"])
    file.write_bytes(b"second" * 1000)
    image["checksum"] = digest("sha256", file.read_bytes())
    del flavor["extra_specs"], flavor["projects"]  # nobody says who may use it: who might may
    flavor["vcpus"] = 16
    anew = catalog(**asked)
    assert not anew.get("failed"), anew
    assert [anew[kind]["recreated"] for kind in ("images", "flavors")] == 2 * [[image["name"]]]
    assert not catalog(**asked)["changed"]
    assert admin.image.download_image(admin.image.find_image(image["name"])).content == b"second" * 1000
    found = admin.compute.find_flavor(image["name"], get_extra_specs=True)
    assert (found.vcpus, found.ram, found.extra_specs) == (16, 4096, {"hw:cpu_policy": "shared"})
    tenant = admin.identity.find_project("tenant-b")
    assert [each["tenant_id"] for each in admin.compute.get_flavor_access(found)] == [tenant.id]
    # Everybody may, from now on.
    flavor["public"] = True
    assert catalog(**asked)["flavors"]["recreated"] == [image["name"]]
    assert not catalog(**asked)["changed"]


def test_a_file_that_is_not_what_it_should_be_is_refused(admin: Connection, asked: dict[str, Any]) -> None:
    image = asked["images"][0]
    image["checksum"] = digest("sha256", b"something else")
    result = catalog(**asked)
    assert f"Cannot create image '{image['name']}': the file {image['file']} has sha256:" in result["msg"]
    assert admin.image.find_image(image["name"]) is None
    assert admin.compute.find_flavor(image["name"]) is not None  # the others are not held up
    image["checksum"] = "md5:123"
    assert "is not of the form sha256: or sha512:" in catalog(**asked)["msg"]
    image.update(checksum=digest("sha256", b""), file="/nowhere")
    assert "the file /nowhere cannot be read: No such file or directory" in catalog(**asked)["msg"]
    result = catalog(flavors=[{"name": "new", "disk": 1}])
    assert result["msg"] == "Cannot create flavor 'new': a new flavor needs vcpus and ram: say how much."
