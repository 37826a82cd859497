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
from ..common.lookup import ambiguous
from ..common.steps import CREATIONS, REMOVALS, select, step_id
from ..common.tags import TAG, owner_of
from ..common.writer import WaitingWriter
from .families import SERVER, port_name

_WITH_HOST = {"microversion": "2.74"}  # accepts the host of a new server and checks that the server fits there
_UNDER_WAY = ("BUILD", "REBUILD", "REBOOT", "HARD_REBOOT", "MIGRATING")


class Names:
    """Ids of images and flavors by name for the servers of one project, each read once."""

    def __init__(self, cloud: Cloud, project: str) -> None:
        self._cloud = cloud
        self._project = project
        self._flavors: dict[str, Object] | None = None
        self._accessible: dict[str, bool] = {}
        self._images: dict[str, str] = {}

    def image(self, name: str, server: str) -> str:
        """Return the id of the image of a server. Raises UserError."""
        if name not in self._images:
            found = self._cloud.request("image", "GET", "/images", params={"name": name})["images"]
            active = [raw["id"] for raw in found if raw["status"] == "active"]
            if len(active) != 1:
                raise UserError(
                    "Cannot use image '%s' for server '%s': %d active images have this name. Create one, or rename the "
                    "others." % (name, server, len(active))
                )
            self._images[name] = active[0]
        return self._images[name]

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


def fetch(cloud: Cloud, servers: list[Object], names: Names, project: str) -> list[Object]:
    """Read those of the servers that exist in the project with this id. Raises UserError."""
    other_project = {} if project == cloud.authorize() else {"all_tenants": "1", "project_id": project}

    def find(item: Object) -> list[Object]:
        query = {"name": "^%s$" % re.escape(item["name"]), **other_project}
        found: list[Object] = cloud.request("compute", "GET", "/servers/detail", params=query, **_WITH_HOST)["servers"]
        return [raw for raw in found if raw["name"] == item["name"]]

    actual = []
    for item, found in zip(servers, cloud.map(find, servers), strict=True):
        if len(found) > 1:
            raise ambiguous(SERVER, item["name"], found)
        actual += [_server(raw, item, names) for raw in found]
    return actual


def _server(raw: Object, item: Object, names: Names) -> Object:
    server = {
        "name": raw["name"],
        "uuid": raw["id"],
        "usable": raw["status"] != "ERROR",
        "status": raw["status"],
        "under_way": raw["status"] in _UNDER_WAY,
        "owner": owner_of(raw),
        "flavor": raw["flavor"]["original_name"],
        "addresses": {net: [each["addr"] for each in found] for net, found in raw["addresses"].items()},
    }
    image = (raw["image"] or {}).get("id")
    if image and "image" in item:
        server["image"] = item["image"] if names.image(item["image"], item["name"]) == image else image
    if raw.get("OS-EXT-SRV-ATTR:host"):
        server["host"] = raw["OS-EXT-SRV-ATTR:host"]
    return server


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
        """Wait for a server that is starting."""
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
        if raw["status"] == "ERROR":
            fault = raw.get("fault", {}).get("message", "Nova reports no cause")
            raise CloudError(
                "it failed to start: %s. Nova keeps it with the status ERROR and the ID %s. Correct the cause, and run "
                "the task again, which recreates it." % (fault.strip().rstrip("."), raw["id"]),
                400,
            )
        return bool(raw["status"] == "ACTIVE")
