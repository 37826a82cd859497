# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manila API: reads and writes of share types, shares and access rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...reconcile import Action, ItemError, Object, Step, UserError
from ..common.client import Cloud, CloudError
from ..common.lookup import ambiguous
from ..common.steps import CREATIONS, REMOVALS, select, step_id
from ..common.type_access import recreated, resolve_access, set_access, set_specs
from ..common.writer import MissingError, WaitingWriter
from .families import ACCESS_RULE, FILE_SHARE, SERVICE, SHARE_SERVERS, SHARE_TYPE, access_rule, only_removes_access

_ERROR = "error"
_RULE_ERROR, _RULE_ACTIVE = "error", "active"
_DENY_IN_ERROR = (2, 74)  # microversion that removes the rules of a share in state error
_UNDER_WAY = ("creating", "creating_from_snapshot", "deleting", "extending", "shrinking", "migrating", "reverting")


@dataclass
class ShareState:
    """Actual objects by kind, and ids of shares by name."""

    objects: dict[str, list[Object]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Project:
    """Project of the shares. ``own``: whether it is the project of the credentials. ``name`` is for messages."""

    id: str
    name: str
    own: bool

    @property
    def unreadable(self) -> str:
        """Message about credentials that cannot read the shares of another project."""
        return (
            "Cannot read the shares of project '%s': the credentials are for another project, and not for an "
            "administrator. Use those of an administrator, or of this project." % self.name
        )


def fetch(cloud: Cloud, objects: dict[str, list[Object]], project: Project, recreate: bool) -> ShareState:
    """Read the actual state of ``objects``, whose types get the ids of their projects. Raises UserError.

    With ``recreate``, a share that failed after its creation is not usable, as one that was never created.
    """
    state = ShareState({SHARE_TYPE.kind: [], FILE_SHARE.kind: [], ACCESS_RULE.kind: []})
    if objects[SHARE_TYPE.kind]:
        found = cloud.request(SERVICE, "GET", "/types", params={"is_public": "all"})["share_types"]
        types = state.objects[SHARE_TYPE.kind] = [_type(raw) for raw in found]
        path, key = "/types/%s/share_type_access", "share_type_access"
        resolve_access(cloud, objects[SHARE_TYPE.kind], types, SERVICE, path, key)
    names = [item["name"] for item in objects[FILE_SHARE.kind]]
    if names and not project.own:
        _check_administrator(cloud, project)
    shares = cloud.map(lambda name: _find(cloud, name, project, recreate), names)
    for name, share in zip(names, shares, strict=True):
        if share:
            state.objects[FILE_SHARE.kind].append(share)
            state.ids[name] = share["uuid"]
    with_rules = [item["name"] for item in objects[FILE_SHARE.kind] if "access" in item and item["name"] in state.ids]
    for rules in cloud.map(lambda name: _rules(cloud, name, state.ids[name]), with_rules):
        state.objects[ACCESS_RULE.kind] += rules
    return state


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


def _check_administrator(cloud: Cloud, project: Project) -> None:
    """Raise UserError for credentials without rights for another project.

    Without these rights, Manila ignores ``all_tenants`` and ``project_id``, and lists the shares of the credentials.
    It rejects a request for the quotas of another project.
    """
    try:
        cloud.request(SERVICE, "GET", "/quota-sets/%s" % project.id)
    except CloudError as error:
        if error.status != 403:
            raise
        raise UserError(project.unreadable) from None


def _find(cloud: Cloud, name: str, project: Project, recreate: bool) -> Object | None:
    query = {"name": name} if project.own else {"name": name, "all_tenants": "1", "project_id": project.id}
    found = cloud.request(SERVICE, "GET", "/shares/detail", params=query)["shares"]
    if any(raw["project_id"] != project.id for raw in found):
        raise UserError(project.unreadable)  # Manila ignored the query
    found = [raw for raw in found if raw["name"] == name]
    if len(found) > 1:
        raise ambiguous(FILE_SHARE, name, found)
    if not found:
        return None
    raw = found[0]
    # A share that failed after its creation has exports, and data.
    failed = raw["status"] == _ERROR
    has_data = failed and bool(fetch_exports(cloud, raw["id"]))
    return {
        "uuid": raw["id"],
        "name": name,
        "status": raw["status"],
        "usable": not failed or (has_data and not recreate),
        "under_way": raw["status"] in _UNDER_WAY or has_data,
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
            "under_way": raw["state"] not in (_RULE_ERROR, _RULE_ACTIVE),
        }
        for raw in found
    ]


def fetch_exports(cloud: Cloud, id: str) -> list[str]:
    """Read the export paths of a share, preferred ones first."""
    found = cloud.request(SERVICE, "GET", "/shares/%s/export_locations" % id)["export_locations"]
    visible = [raw for raw in found if not raw.get("is_admin_only")]
    return [raw["path"] for raw in sorted(visible, key=lambda raw: (not raw["preferred"], raw["path"]))]


class ShareWriter(WaitingWriter):
    """Writer of share types, shares and access rules. It waits until they are ready or removed."""

    def __init__(self, cloud: Cloud, state: ShareState, timeout: float) -> None:
        """Wait at most ``timeout`` seconds for each object."""
        super().__init__(cloud, SERVICE)
        self._ids = dict(state.ids)
        shares = state.objects[FILE_SHARE.kind]
        self._failed_shares = {share["name"] for share in shares if share["status"] == _ERROR}
        self._timeout = timeout

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write the steps and return the errors."""
        # Shares before types: Manila removes the rules of a removed share, but keeps a type in use.
        self.for_each(select(steps, ACCESS_RULE, REMOVALS), self._deny)
        self.for_each(select(steps, FILE_SHARE, REMOVALS), self._delete)
        self.for_each(select(steps, SHARE_TYPE, REMOVALS), self._delete_type)
        self.for_each(select(steps, SHARE_TYPE, (Action.CHANGE, *CREATIONS)), self._type)
        self.for_each(select(steps, FILE_SHARE, (Action.CHANGE,)), self._change)
        self.for_each(select(steps, FILE_SHARE, CREATIONS), self._create)
        self.for_each(select(steps, ACCESS_RULE, CREATIONS), self._allow)
        return self.errors

    def wait_ready(self, step: Step) -> None:
        """Wait for a share that is being created, or a rule that its backend applies. A failed share is an error."""
        id = (step.before or {})["uuid"]
        if step.family is not FILE_SHARE:
            self._wait_active(id)
        elif not only_removes_access(step.desired or {}):
            self._wait_available("/shares/%s" % id)

    def _delete_type(self, step: Step) -> None:
        self.remove("/types/%s" % (step.before or {})["uuid"])
        if step.action is Action.RECREATE:
            self.removed.add(step_id(step))

    def _type(self, step: Step) -> None:
        item, before = step.desired or {}, step.before or {}
        if step.action is Action.CHANGE:
            id, actual = before["uuid"], before
            names = {"description": "description", "public": "share_type_access:is_public"}
            body = {key: item[name] for name, key in names.items() if name in item and item[name] != before[name]}
            if body:
                self.write("PUT", "/types/%s" % id, json={"share_type": body})
        else:
            item = recreated(step)
            body = {
                "name": step.key,
                "description": item.get("description"),
                "share_type_access:is_public": item.get("public", True),
                "extra_specs": {SHARE_SERVERS: str(item.get("share_servers", False))},
            }
            id = self.write("POST", "/types", json={"share_type": body})["share_type"]["id"]
            self.created_ids[step_id(step)] = id
            actual = {"extra_specs": {}, "projects": []}
        set_specs(self, item, actual, SERVICE, "/types/%s/extra_specs" % id)
        set_access(self, item, actual, SERVICE, "/types/%s/action" % id, "ProjectAccess", "project")

    def _delete(self, step: Step) -> None:
        path = "/shares/%s" % (step.before or {})["uuid"]
        self.remove(path)
        self.wait(lambda: self._share(path, "error_deleting") is None, self._timeout)
        self._ids.pop(step.key, None)
        if step.action is Action.RECREATE:
            self.removed.add(step_id(step))

    def _create(self, step: Step) -> None:
        item = {**(step.before or {}), **(step.desired or {})}
        missing = [name for name in ("size", "protocol") if name not in item]
        if missing:
            raise CloudError("a new share needs %s. Set the missing options." % " and ".join(missing), 400)
        keys = {"size": "size", "protocol": "share_proto", "type": "share_type", "description": "description"}
        body = {"name": step.key, **{key: item[name] for name, key in keys.items() if item.get(name) is not None}}
        id = self.write("POST", "/shares", json={"share": body})["share"]["id"]
        self.created_ids[step_id(step)] = id
        self._wait_available("/shares/%s" % id)
        self._ids[step.key] = id

    def _change(self, step: Step) -> None:
        item, before = step.desired or {}, step.before or {}
        path = "/shares/%s" % before["uuid"]
        if item.get("description", before["description"]) != before["description"]:
            self.write("PUT", path, json={"share": {"display_description": item["description"]}})
        size = item.get("size", before["size"])
        if size != before["size"]:
            action = "extend" if size > before["size"] else "shrink"
            self.write("POST", "%s/action" % path, json={action: {"new_size": size}})
            self._wait_available(path)

    def _wait_available(self, path: str) -> None:
        self.wait(lambda: self._is_available(self._share(path, "error")), self._timeout)

    @staticmethod
    def _is_available(share: Object | None) -> bool:
        if share is None:
            raise CloudError("it was removed in the meantime. Run the task again.", 404)
        return bool(share["status"] == "available")

    def _share(self, path: str, *failed: str) -> Object | None:
        """Return the share, None when it does not exist. Raises CloudError in ``failed`` and other error states."""
        try:
            found: Object = self.cloud.request(SERVICE, "GET", path)["share"]
        except CloudError as error:
            if error.status != 404:
                raise
            return None
        if found["status"] in failed or found["status"].endswith("_error"):
            message = "it is in state %s: %s." % (found["status"], self._cause(found["id"]))
            if found["status"] == _ERROR and fetch_exports(self.cloud, found["id"]):
                message += " Its data may be intact. Repair it, or set recreate to replace it."
            raise CloudError(message, 400)
        return found

    def _cause(self, id: str) -> str:
        """Return the newest message of Manila about a failed share, without a full stop."""
        query = {"resource_id": id, "sort_key": "created_at", "sort_dir": "desc"}
        found = self.cloud.request(SERVICE, "GET", "/messages", params=query)["messages"]
        return str(found[0]["user_message"] if found else "Manila reports no cause").strip().rstrip(".")

    def _id(self, share: str) -> str:
        if share not in self._ids:
            raise MissingError(FILE_SHARE, share)
        return self._ids[share]

    def _deny(self, step: Step) -> None:
        before = step.before or {}
        path = "/shares/%s/action" % self._id(before["share"])
        version = self._deny_version(before["share"])
        try:
            self.write("POST", path, json={"deny_access": {"access_id": before["uuid"]}}, **version)
        except CloudError as error:
            if error.status != 404:
                raise
        self.wait(lambda: self._rule(before["uuid"]) is None, self._timeout)
        if step.action is Action.RECREATE:
            self.removed.add(step_id(step))

    def _deny_version(self, share: str) -> Object:
        """Return the option of a request that removes a rule. Raises CloudError if Manila is too old for it."""
        if share not in self._failed_shares:
            return {}
        newest = self.cloud.max_microversion(SERVICE)
        if newest is not None and newest < _DENY_IN_ERROR:
            raise CloudError(
                "its share is in state error, and Manila removes the rules of such a share since API version %d.%d, "
                "but this one has %d.%d. Repair the share, or upgrade Manila." % (*_DENY_IN_ERROR, *newest),
                400,
            )
        return {"microversion": "%d.%d" % _DENY_IN_ERROR}

    def _allow(self, step: Step) -> None:
        item = step.desired or {}
        rule = {"access_type": item["type"], "access_to": item["to"], "access_level": item["level"]}
        share = self._id(item["share"])
        made = self.write("POST", "/shares/%s/action" % share, json={"allow_access": rule})["access"]["id"]
        self.created_ids[step_id(step)] = made
        self._wait_active(made)

    def _wait_active(self, id: str) -> None:
        self.wait(lambda: (self._rule(id) or {}).get("state") == _RULE_ACTIVE, self._timeout)

    def _rule(self, id: str) -> Object | None:
        try:
            found: Object = self.cloud.request(SERVICE, "GET", "/share-access-rules/%s" % id)["access"]
        except CloudError as error:
            if error.status != 404:
                raise
            return None
        if found["state"] == _RULE_ERROR:
            raise CloudError("the backend of the share rejected this rule.", 400)
        return found
