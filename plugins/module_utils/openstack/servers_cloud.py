# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and writing servers: Nova, with the names of images and flavors."""

from __future__ import annotations

import base64
import re
import typing as t

from ..reconcile import Action, ItemError, Object, SentenceError, Step
from .attempts import Awaiting, of, place
from .client import Cloud, CloudError
from .resources import TAG
from .servers import SERVER, port_name

_WITH_HOST = {"microversion": "2.74"}  # since when Nova is told on which host, and checks that it fits there
_UNDER_WAY = ("BUILD", "REBUILD", "REBOOT", "HARD_REBOOT", "MIGRATING")  # of which something else becomes


class Names:
    """Ids of images and flavors by name, asked for once each."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._flavors: dict[str, str] | None = None
        self._images: dict[str, str] = {}

    def image(self, name: str) -> str:
        """The id of an image; raises SentenceError."""
        if name not in self._images:
            found = self._cloud.request("image", "GET", "/images", params={"name": name})["images"]
            active = [raw["id"] for raw in found if raw["status"] == "active"]
            if len(active) != 1:
                raise SentenceError(
                    "There are %d images named '%s' to start from: make one, or rename the others."
                    % (len(active), name)
                )
            self._images[name] = active[0]
        return self._images[name]

    def flavor(self, name: str) -> str:
        """The id of a flavor; raises SentenceError."""
        if self._flavors is None:
            found = self._cloud.request("compute", "GET", "/flavors")["flavors"]
            self._flavors = {raw["name"]: raw["id"] for raw in found}
        if name not in self._flavors:
            raise SentenceError("There is no flavor '%s' for this project: make it, or let the project use it." % name)
        return self._flavors[name]

    def of(self, item: Object) -> tuple[str, str]:
        """The ids of image and flavor of a server that is to be made; raises SentenceError."""
        missing = [name for name in ("image", "flavor") if name not in item]
        if missing:
            raise SentenceError("a new server needs %s." % " and ".join(missing))
        return self.image(item["image"]), self.flavor(item["flavor"])


def look(cloud: Cloud, asked: list[Object], names: Names, project: str) -> list[Object]:
    """The servers that are asked for and are there, of the project with this id. Raises SentenceError."""
    of_others = {} if project == cloud.authorize() else {"all_tenants": "1", "project_id": project}

    def find(item: Object) -> list[Object]:
        query = {"name": "^%s$" % re.escape(item["name"]), **of_others}
        found: list[Object] = cloud.request("compute", "GET", "/servers/detail", params=query, **_WITH_HOST)["servers"]
        return [raw for raw in found if raw["name"] == item["name"]]

    servers = []
    for item, found in zip(asked, cloud.together(find, asked), strict=True):
        if len(found) > 1:
            raise SentenceError(
                "There are %d servers named '%s' (%s): remove all but one."
                % (len(found), item["name"], ", ".join(sorted(raw["id"] for raw in found)))
            )
        servers += [_server(raw, item, names) for raw in found]
    return servers


def _server(raw: Object, item: Object, names: Names) -> Object:
    server = {
        "name": raw["name"],
        "uuid": raw["id"],
        "usable": raw["status"] != "ERROR",
        "status": raw["status"],
        "under_way": raw["status"] in _UNDER_WAY,
        "owner": next((tag.removeprefix(TAG) for tag in raw.get("tags") or () if tag.startswith(TAG)), None),
        "flavor": raw["flavor"]["original_name"],
        "addresses": {net: [each["addr"] for each in found] for net, found in raw["addresses"].items()},
    }
    image = (raw["image"] or {}).get("id")
    if image and "image" in item:
        server["image"] = item["image"] if names.image(item["image"]) == image else image
    if raw.get("OS-EXT-SRV-ATTR:host"):
        server["host"] = raw["OS-EXT-SRV-ATTR:host"]
    return server


class ServerWriter(Awaiting):
    """Carries steps out, and waits for what becomes of them."""

    def __init__(
        self, cloud: Cloud, names: Names, owner: str, timeout: float, port: t.Callable[[str], str | None]
    ) -> None:
        """``port`` gives the id of a port by its name."""
        super().__init__(cloud, "compute")
        self._names = names
        self._owner = owner
        self._timeout = timeout
        self._port = port

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write; the errors are those of steps that were not carried out."""
        self.each(of(steps, SERVER, (Action.DELETE, Action.RECREATE)), self._delete)
        self.each(of(steps, SERVER, (Action.CREATE, Action.RECREATE)), self._create)
        return self.errors

    def ready(self, step: Step) -> None:
        """Wait for one that is still being started."""
        self._wait_for((step.before or {})["uuid"])

    def _delete(self, step: Step) -> None:
        path = "/servers/%s" % (step.before or {})["uuid"]
        self.remove(path)
        self.wait(lambda: self._status(path) is None, self._timeout)
        if step.action is Action.RECREATE:
            self.removed.add(place(step))

    def _status(self, path: str) -> Object | None:
        try:
            found: Object = self.cloud.request("compute", "GET", path, **_WITH_HOST)["server"]
        except CloudError as error:
            if error.status != 404:
                raise
            return None
        return found

    def _create(self, step: Step) -> None:
        item = step.wanted or {}
        image, flavor = self._names.of(item)
        names = [port_name(item, network) for network in item.get("networks") or ()]
        ports = {name: self._port(name) for name in names}
        lost = [name for name, id in ports.items() if id is None]
        if lost:
            raise CloudError("its port '%s' is not there." % lost[0], 400)
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
        self._wait_for(id)

    def _wait_for(self, id: str) -> None:
        self.wait(lambda: self._started("/servers/%s" % id), self._timeout)

    def _started(self, path: str) -> bool:
        raw = self._status(path)
        if raw is None:
            raise CloudError("somebody removed it while it started.", 404)
        if raw["status"] == "ERROR":
            fault = raw.get("fault", {}).get("message", "it does not say why")
            raise CloudError("it could not be started: %s" % fault, 400)
        return bool(raw["status"] == "ACTIVE")
