# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and writing shared file systems: Manila."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..reconcile import Action, ItemError, Object, Step
from .attempts import Awaiting, MissingError, of, place
from .client import Cloud, CloudError
from .reading import ambiguous
from .shares import ACCESS_RULE, FILE_SHARE, SHARE_SERVERS, SHARE_TYPE, access_rule
from .types_cloud import find_access, let_in, set_specs, whole

SERVICE = "shared_file_system"
_RULE_ERROR, _RULE_DONE = "error", "active"
_UNDER_WAY = ("creating", "creating_from_snapshot", "deleting", "extending", "shrinking", "migrating", "reverting")


@dataclass
class There:
    """What there is of what is asked for, by kind; ids of shares by name."""

    objects: dict[str, list[Object]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)


def look(cloud: Cloud, objects: dict[str, list[Object]]) -> There:
    """What there is. Raises SentenceError."""
    cloud.authorize()
    there = There({SHARE_TYPE.kind: [], FILE_SHARE.kind: [], ACCESS_RULE.kind: []})
    if objects[SHARE_TYPE.kind]:
        found = cloud.request(SERVICE, "GET", "/types", params={"is_public": "all"})["share_types"]
        types = there.objects[SHARE_TYPE.kind] = [_type(raw) for raw in found]
        path, key = "/types/%s/share_type_access", "share_type_access"
        find_access(cloud, objects[SHARE_TYPE.kind], types, SERVICE, path, key)
    names = [item["name"] for item in objects[FILE_SHARE.kind]]
    for name, share in zip(names, cloud.together(lambda name: _find(cloud, name), names), strict=True):
        if share:
            there.objects[FILE_SHARE.kind].append(share)
            there.ids[name] = share["uuid"]
    with_rules = [item["name"] for item in objects[FILE_SHARE.kind] if "access" in item and item["name"] in there.ids]
    for rules in cloud.together(lambda name: _rules(cloud, name, there.ids[name]), with_rules):
        there.objects[ACCESS_RULE.kind] += rules
    return there


def _type(raw: Object) -> Object:
    specs = dict(raw["extra_specs"])
    return {
        "uuid": raw["id"],
        "name": raw["name"],
        "share_servers": specs.pop(SHARE_SERVERS, "").lower() == "true",
        "description": raw.get("description") or "",
        "public": raw["share_type_access:is_public"],
        "extra_specs": specs,
    }


def _find(cloud: Cloud, name: str) -> Object | None:
    found = cloud.request(SERVICE, "GET", "/shares/detail", params={"name": name})["shares"]
    found = [raw for raw in found if raw["name"] == name]
    if len(found) > 1:
        raise ambiguous(FILE_SHARE, name, found)
    if not found:
        return None
    raw = found[0]
    return {
        "uuid": raw["id"],
        "name": name,
        "status": raw["status"],
        "usable": raw["status"] != "error",
        "under_way": raw["status"] in _UNDER_WAY,
        "protocol": raw["share_proto"],
        "type": raw["share_type_name"],
        "size": raw["size"],
        "description": raw["description"] or "",
    }


def _rules(cloud: Cloud, share: str, id: str) -> list[Object]:
    found = cloud.request(SERVICE, "GET", "/share-access-rules", params={"share_id": id})["access_list"]
    return [
        {
            **access_rule(share, raw["access_to"], raw["access_type"], raw["access_level"]),
            "uuid": raw["id"],
            "usable": raw["state"] != _RULE_ERROR,
            "under_way": raw["state"] not in (_RULE_ERROR, _RULE_DONE),
        }
        for raw in found
    ]


def exports(cloud: Cloud, id: str) -> list[str]:
    """What a client mounts, the preferred way first."""
    found = cloud.request(SERVICE, "GET", "/shares/%s/export_locations" % id)["export_locations"]
    seen = [raw for raw in found if not raw.get("is_admin_only")]
    return [raw["path"] for raw in sorted(seen, key=lambda raw: (not raw["preferred"], raw["path"]))]


class ShareWriter(Awaiting):
    """Carries steps out, and waits for what becomes of them."""

    def __init__(self, cloud: Cloud, there: There, timeout: float) -> None:
        super().__init__(cloud, SERVICE)
        self._ids = dict(there.ids)
        self._timeout = timeout

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write; the errors are those of steps that were not carried out."""
        gone, made = (Action.DELETE, Action.RECREATE), (Action.CREATE, Action.RECREATE)
        # With a share its rules go, and with a type nothing does: shares first.
        self.each(of(steps, ACCESS_RULE, gone), self._deny)
        self.each(of(steps, FILE_SHARE, gone), self._delete)
        self.each(of(steps, SHARE_TYPE, gone), self._delete_type)
        self.each(of(steps, SHARE_TYPE, (Action.CHANGE, *made)), self._type)
        self.each(of(steps, FILE_SHARE, (Action.CHANGE,)), self._change)
        self.each(of(steps, FILE_SHARE, made), self._create)
        self.each(of(steps, ACCESS_RULE, made), self._allow)
        return self.errors

    def ready(self, step: Step) -> None:
        """Wait for a share that is being made, or for a rule that its backend is being told."""
        id = (step.before or {})["uuid"]
        if step.family is FILE_SHARE:
            self._until_available("/shares/%s" % id)
        else:
            self._until_active(id)

    # Types

    def _delete_type(self, step: Step) -> None:
        self.remove("/types/%s" % (step.before or {})["uuid"])
        if step.action is Action.RECREATE:
            self.removed.add(place(step))

    def _type(self, step: Step) -> None:
        item, before = step.wanted or {}, step.before or {}
        if step.action is Action.CHANGE:
            id, there = before["uuid"], before
            names = {"description": "description", "public": "share_type_access:is_public"}
            body = {key: item[name] for name, key in names.items() if name in item and item[name] != before[name]}
            if body:
                self.write("PUT", "/types/%s" % id, json={"share_type": body})
        else:
            item = whole(step)
            body = {
                "name": step.key,
                "description": item.get("description"),
                "share_type_access:is_public": item.get("public", True),
                "extra_specs": {SHARE_SERVERS: str(item.get("share_servers", False))},
            }
            id = self.write("POST", "/types", json={"share_type": body})["share_type"]["id"]
            there = {"extra_specs": {}, "projects": []}
        set_specs(self, item, there, SERVICE, "/types/%s/extra_specs" % id)
        let_in(self, item, there, SERVICE, "/types/%s/action" % id, "ProjectAccess", "project")

    # Shares

    def _delete(self, step: Step) -> None:
        path = "/shares/%s" % (step.before or {})["uuid"]
        self.remove(path)
        self.wait(lambda: self._share(path, "error_deleting") is None, self._timeout)
        self._ids.pop(step.key, None)
        if step.action is Action.RECREATE:
            self.removed.add(place(step))

    def _create(self, step: Step) -> None:
        item = {**(step.before or {}), **(step.wanted or {})}
        missing = [name for name in ("size", "protocol") if name not in item]
        if missing:
            raise CloudError("a new share needs %s." % " and ".join(missing), 400)
        keys = {"size": "size", "protocol": "share_proto", "type": "share_type", "description": "description"}
        body = {"name": step.key, **{key: item[name] for name, key in keys.items() if item.get(name) is not None}}
        id = self.write("POST", "/shares", json={"share": body})["share"]["id"]
        self._until_available("/shares/%s" % id)
        self._ids[step.key] = id

    def _change(self, step: Step) -> None:
        item, before = step.wanted or {}, step.before or {}
        path = "/shares/%s" % before["uuid"]
        if item.get("description", before["description"]) != before["description"]:
            self.write("PUT", path, json={"share": {"display_description": item["description"]}})
        size = item.get("size", before["size"])
        if size != before["size"]:
            action = "extend" if size > before["size"] else "shrink"
            self.write("POST", "%s/action" % path, json={action: {"new_size": size}})
            self._until_available(path)

    def _until_available(self, path: str) -> None:
        self.wait(lambda: self._available(self._share(path, "error")), self._timeout)

    @staticmethod
    def _available(share: Object | None) -> bool:
        if share is None:
            raise CloudError("it was removed meanwhile: run again.", 404)
        return bool(share["status"] == "available")

    def _share(self, path: str, *failed: str) -> Object | None:
        """The share, None when it is gone. Raises CloudError when it has one of these states, or another error."""
        try:
            found: Object = self.cloud.request(SERVICE, "GET", path)["share"]
        except CloudError as error:
            if error.status != 404:
                raise
            return None
        if found["status"] in failed or found["status"].endswith("_error"):
            raise CloudError("it is in state %s: %s" % (found["status"], self._why(found["id"])), 400)
        return found

    def _why(self, id: str) -> str:
        """What Manila told its user of a share that failed."""
        query = {"resource_id": id, "sort_key": "created_at", "sort_dir": "desc"}
        found = self.cloud.request(SERVICE, "GET", "/messages", params=query)["messages"]
        return str(found[0]["user_message"]) if found else "it does not say why."

    # Who may mount them

    def _id(self, share: str) -> str:
        if share not in self._ids:
            raise MissingError(FILE_SHARE, share)
        return self._ids[share]

    def _deny(self, step: Step) -> None:
        before = step.before or {}
        share = self._id(before["share"])
        try:
            self.write("POST", "/shares/%s/action" % share, json={"deny_access": {"access_id": before["uuid"]}})
        except CloudError as error:
            if error.status != 404:
                raise
        self.wait(lambda: self._rule(before["uuid"]) is None, self._timeout)
        if step.action is Action.RECREATE:
            self.removed.add(place(step))

    def _allow(self, step: Step) -> None:
        item = step.wanted or {}
        rule = {"access_type": item["type"], "access_to": item["to"], "access_level": item["level"]}
        share = self._id(item["share"])
        made = self.write("POST", "/shares/%s/action" % share, json={"allow_access": rule})["access"]["id"]
        self._until_active(made)

    def _until_active(self, id: str) -> None:
        self.wait(lambda: (self._rule(id) or {}).get("state") == _RULE_DONE, self._timeout)

    def _rule(self, id: str) -> Object | None:
        try:
            found: Object = self.cloud.request(SERVICE, "GET", "/share-access-rules/%s" % id)["access"]
        except CloudError as error:
            if error.status != 404:
                raise
            return None
        if found["state"] == _RULE_ERROR:
            raise CloudError("the backend of the share does not take this rule.", 400)
        return found
