# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of servers. Glance lists the images of all projects for an administrator."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import RejectedError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.server.task import OPENSTACK_POD_SERVER
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import port
from tests.unit.collection.openstack.task_support import ATTACHED, MAC, NETWORKS, NOVA, OPTIONS, SERVER, run

OWN, OTHER = "p1", "p2"  # project of the credentials, and another one


def image(id: str, owner: str, visibility: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "status": "active", "owner": owner, "visibility": visibility, **fields}


PUBLIC = image("public", OTHER, "public")
FOREIGN = image("foreign", OTHER, "private")
MEMBERS = "GET /images/foreign/members"


def cloud(*images: dict[str, Any], **responses: Any) -> FakeCloud:
    return FakeCloud(
        {
            **NETWORKS,
            **NOVA,
            "GET /images": {"images": list(images)},
            "GET /servers/detail": [{"servers": []}, {"servers": [SERVER]}],
            "POST /ports": {"ports": [port("vm-data", MAC)]},
            "POST /servers": {"server": {"id": "s1"}},
            "GET /servers/s1": {"server": SERVER},
            **responses,
        }
    )


@pytest.mark.parametrize("own", [PUBLIC, image("own", OWN, "private"), image("own", OWN, "shared")])
def test_images_of_other_projects_neither_replace_nor_hide_an_image(own: dict[str, Any]) -> None:
    for foreign in (FOREIGN, {**FOREIGN, "visibility": "shared"}, {**FOREIGN, "visibility": "community"}):
        fake = cloud(foreign, own, **{MEMBERS: {"members": []}})
        run(OPENSTACK_POD_SERVER, fake, **OPTIONS)
        assert [body["server"]["imageRef"] for key, body in fake.writes if key == "POST /servers"] == [own["id"]]


@pytest.mark.parametrize("visibility", ["private", "shared", "community"])
def test_the_only_image_belongs_to_another_project(visibility: str) -> None:
    members = {"members": [{"member_id": OWN, "status": "pending"}, {"member_id": "p3", "status": "accepted"}]}
    fake = cloud({**FOREIGN, "visibility": visibility}, **{MEMBERS: members})
    with pytest.raises(UserError) as failure:
        run(OPENSTACK_POD_SERVER, fake, **OPTIONS)
    assert failure.value.message == (
        "Cannot use image 'ubuntu' for server 'vm': 0 active images of this project, shared with it or public, have "
        "this name. Create one, or rename the others."
    )
    assert fake.writes == []


def test_an_image_that_the_project_has_accepted_is_used() -> None:
    members = {"members": [{"member_id": OWN, "status": "accepted"}]}
    fake = cloud({**FOREIGN, "visibility": "shared"}, **{MEMBERS: members})
    assert run(OPENSTACK_POD_SERVER, fake, **OPTIONS)["servers"]["created"] == ["vm"]
    assert fake.writes[1][1]["server"]["imageRef"] == "foreign"


@pytest.mark.parametrize("status", [403, 404])
def test_an_image_whose_members_are_not_readable_is_not_used(status: int) -> None:
    foreign = {**FOREIGN, "visibility": "shared"}
    members = {MEMBERS: RejectedError("Glance returned an error: it failed.", status)}
    fake = cloud(foreign, PUBLIC, **members)
    run(OPENSTACK_POD_SERVER, fake, **OPTIONS)
    assert fake.writes[1][1]["server"]["imageRef"] == "public"
    with pytest.raises(UserError, match="0 active images of this project, shared with it or public, have this name"):
        run(OPENSTACK_POD_SERVER, cloud(foreign, **members), **OPTIONS)


def test_other_errors_of_glance_end_the_task() -> None:
    members = {MEMBERS: RejectedError("Glance returned an error: it failed.", 409)}
    with pytest.raises(UserError, match="Glance returned an error: it failed"):
        run(OPENSTACK_POD_SERVER, cloud({**FOREIGN, "visibility": "shared"}, PUBLIC, **members), **OPTIONS)


def test_the_members_of_several_images_are_read_concurrently() -> None:
    together = threading.Barrier(2)

    class Glance(FakeCloud):
        def request(self, service: str, method: str, path: str, **options: Any) -> Any:
            if path.endswith("/members"):
                together.wait(10)
            return super().request(service, method, path, **options)

    shared = [image(id, OTHER, "shared") for id in ("i2", "i3")]
    members = {"members": [{"member_id": OWN, "status": "accepted"}]}
    fake = Glance(
        cloud(*shared, **{"GET /images/i2/members": {"members": []}, "GET /images/i3/members": members}).responses
    )
    run(OPENSTACK_POD_SERVER, fake, **OPTIONS)
    assert fake.writes[1][1]["server"]["imageRef"] == "i3"


def test_images_that_are_usable_must_have_different_names() -> None:
    with pytest.raises(UserError, match="2 active images of this project, shared with it or public, have this name"):
        run(OPENSTACK_POD_SERVER, cloud(PUBLIC, image("own", OWN, "private"), FOREIGN), **OPTIONS)


def test_all_pages_of_the_images_are_read() -> None:
    """A tenant can create more images than one page has."""
    fake = cloud(**{"GET /images": [{"images": [FOREIGN], "next": "/v2/images?marker=foreign"}, {"images": [PUBLIC]}]})
    run(OPENSTACK_POD_SERVER, fake, **OPTIONS)
    assert fake.writes[1][1]["server"]["imageRef"] == "public"
    pages = [query for key, query in fake.reads if key == "GET /images"]
    assert pages[:2] == [{"name": "ubuntu"}, {"name": "ubuntu", "marker": "foreign"}]


def existing(*images: dict[str, Any], used: dict[str, Any] | None) -> FakeCloud:
    """Return a cloud with these images of the desired name, and a server, whose image ``used`` may not exist."""
    ports = {"ports": [ATTACHED]}
    return cloud(*images, **{"GET /servers/detail": {"servers": [SERVER]}, "GET /ports": ports, "GET /images/i1": used})


@pytest.mark.parametrize("used", [None, {"id": "i1", "name": "ubuntu", "status": "active"}])
@pytest.mark.parametrize("images", [[], [PUBLIC], [PUBLIC, image("i1", OWN, "private")]])
def test_a_server_keeps_its_image_when_the_name_moves(images: list[Any], used: dict[str, Any] | None) -> None:
    """Its image was replaced by one of the same name, and may be removed."""
    fake = existing(*images, used=used)
    for check_mode in (True, False):
        result = run(OPENSTACK_POD_SERVER, fake, check_mode, **OPTIONS)
        assert (result["servers"]["unchanged"], result["changed"]) == (["vm"], False)
    assert fake.writes == []


def test_recreate_replaces_a_server_with_an_older_image_of_the_same_name() -> None:
    fake = existing(PUBLIC, used={"id": "i1", "name": "ubuntu"})
    assert run(OPENSTACK_POD_SERVER, fake, True, recreate=True, **OPTIONS)["servers"]["recreated"] == ["vm"]
    fake = existing(image("i1", OWN, "private"), used={"id": "i1", "name": "ubuntu"})
    assert run(OPENSTACK_POD_SERVER, fake, True, recreate=True, **OPTIONS)["servers"]["unchanged"] == ["vm"]


def test_a_server_with_an_image_of_another_name_is_rejected() -> None:
    fake = existing(PUBLIC, used={"id": "i1", "name": "debian"})
    with pytest.raises(UserError, match="Cannot change image of server 'vm' from debian to ubuntu: the field is"):
        run(OPENSTACK_POD_SERVER, fake, **OPTIONS)
    assert fake.writes == []
