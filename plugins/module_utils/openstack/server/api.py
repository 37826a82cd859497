# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nova API: reads and writes of servers, and lookup of images and flavors."""

from __future__ import annotations

import base64
import re
import typing as t

from ...reconcile import Action, ItemError, Object, Step, UserError
from ..common.client import Cloud, CloudError
from ..common.lookup import ambiguous, images_by_name
from ..common.steps import CREATIONS, REMOVALS, select, step_id
from ..common.tags import TAG, owner_of
from ..common.writer import WaitingWriter
from .families import SERVER, port_name

_WITH_HOST = {"microversion": "2.74"}  # accepts the host of a new server and checks that the server fits there
_ERROR = "ERROR"
_UNDER_WAY = ("BUILD", "REBUILD", "REBOOT", "HARD_REBOOT", "MIGRATING")


class Names:
    """Ids of images and flavors by name for the servers of one project, each read once."""

    def __init__(self, cloud: Cloud, project: str) -> None:
        self._cloud = cloud
        self._project = project
        self._flavors: dict[str, Object] | None = None
        self._accessible: dict[str, bool] = {}
        self._images: dict[str, str] = {}
        self._image_names: dict[str, str | None] = {}

    def image(self, name: str, server: str) -> str:
        """Return the id of the image of a server. Raises UserError."""
        if name not in self._images:
            active = [raw for raw in images_by_name(self._cloud, name) if raw["status"] == "active"]
            usable = self._cloud.map(self._is_usable, active)
            ids = [raw["id"] for raw, is_usable in zip(active, usable, strict=True) if is_usable]
            if len(ids) != 1:
                raise UserError(
                    "Cannot use image '%s' for server '%s': %d active images of this project, shared with it or "
                    "public, have this name. Create one, or rename the others." % (name, server, len(ids))
                )
            self._images[name] = ids[0]
        return self._images[name]

    def image_name(self, id: str) -> str | None:
        """Return the name of the image of an existing server, None if the image is removed or not visible."""
        if id not in self._image_names:
            try:
                self._image_names[id] = self._cloud.request("image", "GET", "/images/%s" % id)["name"]
            except CloudError as error:
                if error.status not in (403, 404):
                    raise
                self._image_names[id] = None
        return self._image_names[id]

    def _is_usable(self, image: Object) -> bool:
        """Return whether the project may use an image. Any tenant can create one with the name of another image."""
        if image["visibility"] == "public" or image["owner"] == self._project:
            return True
        if image["visibility"] != "shared":
            return False
        try:
            members = self._cloud.request("image", "GET", "/images/%s/members" % image["id"])["members"]
        except CloudError as error:  # removed in the meantime, or not readable
            if error.status not in (403, 404):
                raise
            return False
        return (self._project, "accepted") in [(raw["member_id"], raw["status"]) for raw in members]

    def flavor(self, name: str, server: str) -> Object:
        """Return the flavor of a server. Raises UserError."""
        found = self.known_flavor(name)
        if found is None:
            raise UserError(
                "Cannot use flavor '%s' for server '%s': it does not exist for this project. Create it, or give the "
                "project access to it." % (name, server)
            )
        return found

    def known_flavor(self, name: str) -> Object | None:
        """Return a flavor, None if it does not exist for this project."""
        # By default, Nova lists the public flavors and those of the project of the credentials.
        other_project = self._project != self._cloud.authorize()
        if self._flavors is None:
            query = {"is_public": "None"} if other_project else {}
            found = self._cloud.list("compute", "/flavors/detail", "flavors", **query)
            self._flavors = {raw["name"]: raw for raw in found}
        flavor = self._flavors.get(name)
        if flavor and other_project and not self._has_access(flavor):
            return None
        return flavor

    def _has_access(self, flavor: Object) -> bool:
        if flavor["os-flavor-access:is_public"]:
            return True
        id = str(flavor["id"])
        if id not in self._accessible:
            found = self._cloud.request("compute", "GET", "/flavors/%s/os-flavor-access" % id)["flavor_access"]
            self._accessible[id] = self._project in [raw["tenant_id"] for raw in found]
        return self._accessible[id]

    def ids(self, item: Object) -> tuple[str, str]:
        """Return the ids of image and flavor of a new server. Raises UserError."""
        missing = [name for name in ("image", "flavor") if name not in item]
        if missing:
            raise UserError(
                "Cannot start server '%s': a new server needs %s. Set the missing options."
                % (item["name"], " and ".join(missing))
            )
        return self.image(item["image"], item["name"]), str(self.flavor(item["flavor"], item["name"])["id"])


def fetch(cloud: Cloud, servers: list[Object], names: Names, project: str, recreate: bool) -> list[Object]:
    """Read those of the servers that exist in the project with this id. Raises UserError.

    Images are compared by name. A server that failed after it ran is usable. With ``recreate``, a newer image of the
    same name is a change too, and no failed server is usable.
    """
    other_project = {} if project == cloud.authorize() else {"all_tenants": "1", "project_id": project}

    def find(item: Object) -> list[Object]:
        query = {"name": "^%s$" % re.escape(item["name"]), **other_project}
        found: list[Object] = cloud.request("compute", "GET", "/servers/detail", params=query, **_WITH_HOST)["servers"]
        return [raw for raw in found if raw["name"] == item["name"]]

    actual = []
    for item, found in zip(servers, cloud.map(find, servers), strict=True):
        if len(found) > 1:
            raise ambiguous(SERVER, item["name"], found)
        actual += [_server(raw, item, names, recreate) for raw in found]
    return actual


def _server(raw: Object, item: Object, names: Names, recreate: bool) -> Object:
    failed = raw["status"] == _ERROR
    has_data = failed and _ran(raw)
    server = {
        "name": raw["name"],
        "uuid": raw["id"],
        "usable": not failed or (has_data and not recreate),
        "status": raw["status"],
        "under_way": raw["status"] in _UNDER_WAY or has_data,
        "owner": owner_of(raw),
        "flavor": raw["flavor"]["original_name"],
        "addresses": {net: [each["addr"] for each in found] for net, found in raw["addresses"].items()},
    }
    image = (raw["image"] or {}).get("id")
    if image and "image" in item:
        if recreate:
            server["image"] = item["image"] if names.image(item["image"], item["name"]) == image else image
        elif (name := names.image_name(image)) is not None:
            server["image"] = name
    if raw.get("OS-EXT-SRV-ATTR:host"):
        server["host"] = raw["OS-EXT-SRV-ATTR:host"]
    return server


def _ran(raw: Object) -> bool:
    """Return whether a server has started once, so that its disks may contain data."""
    return bool(raw.get("OS-SRV-USG:launched_at"))


class ServerWriter(WaitingWriter):
    """Writer of servers. It waits until they are started or removed."""

    def __init__(
        self, cloud: Cloud, names: Names, owner: str, timeout: float, port: t.Callable[[str], str | None]
    ) -> None:
        """Wait at most ``timeout`` seconds for each server; ``port`` returns the id of a port by name."""
        super().__init__(cloud, "compute")
        self._names = names
        self._owner = owner
        self._timeout = timeout
        self._port = port

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write the steps and return the errors."""
        self.for_each(select(steps, SERVER, REMOVALS), self._delete)
        self.for_each(select(steps, SERVER, CREATIONS), self._create)
        return self.errors

    def wait_ready(self, step: Step) -> None:
        """Wait for a server that is starting. One that failed after its start is an error."""
        self._wait_for((step.before or {})["uuid"])

    def _delete(self, step: Step) -> None:
        path = "/servers/%s" % (step.before or {})["uuid"]
        self.remove(path)
        self.wait(lambda: self._status(path) is None, self._timeout)
        if step.action is Action.RECREATE:
            self.removed.add(step_id(step))

    def _status(self, path: str) -> Object | None:
        try:
            found: Object = self.cloud.request("compute", "GET", path, **_WITH_HOST)["server"]
        except CloudError as error:
            if error.status != 404:
                raise
            return None
        return found

    def _create(self, step: Step) -> None:
        item = step.desired or {}
        image, flavor = self._names.ids(item)
        names = [port_name(item, network) for network in item.get("networks") or ()]
        ports = {name: self._port(name) for name in names}
        missing = [name for name, id in ports.items() if id is None]
        if missing:
            raise CloudError("its port '%s' does not exist." % missing[0], 400)
        body: Object = {
            "name": step.key,
            "imageRef": image,
            "flavorRef": flavor,
            "networks": [{"port": id} for id in ports.values()] or "none",
            "tags": [TAG + self._owner],
        }
        if "user_data" in item:
            body["user_data"] = base64.b64encode(item["user_data"].encode()).decode()
        named = {"key_pair": "key_name", "config_drive": "config_drive", "host": "host"}
        body.update((key, item[name]) for name, key in named.items() if name in item)
        id = self.write("POST", "/servers", json={"server": body}, **_WITH_HOST)["server"]["id"]
        self.created_ids[step_id(step)] = id
        self._wait_for(id)

    def _wait_for(self, id: str) -> None:
        self.wait(lambda: self._started("/servers/%s" % id), self._timeout)

    def _started(self, path: str) -> bool:
        raw = self._status(path)
        if raw is None:
            raise CloudError("it was removed while it started.", 404)
        if raw["status"] == _ERROR:
            fault = raw.get("fault", {}).get("message", "Nova reports no cause").strip().rstrip(".")
            if _ran(raw):
                raise CloudError(
                    "it ran before, and now has the status ERROR: %s. Its disks may contain data. Repair it (openstack "
                    "server reboot --hard %s), or set recreate to replace it." % (fault, raw["id"]),
                    400,
                )
            raise CloudError(
                "it failed to start: %s. Nova keeps it with the status ERROR and the ID %s. Correct the cause, and run "
                "the task again, which recreates it." % (fault, raw["id"]),
                400,
            )
        return bool(raw["status"] == "ACTIVE")
