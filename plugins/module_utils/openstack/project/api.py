# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keystone API, and those of quotas and key pairs: reads and writes of projects and their users."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...reconcile import Action, Family, ItemError, Object, Step, UserError
from ..common.client import Cloud, CloudError
from ..common.steps import CREATIONS, select, step_id
from ..common.writer import MissingError, StepWriter
from .families import GRANT, KEY_PAIR, PROJECT, QUOTA, USER, grant, key_pair, quota

_QUOTAS = {  # service, path and key in the response
    "compute": ("compute", "/os-quota-sets/%s", "quota_set"),
    "network": ("network", "/quotas/%s", "quota"),
    "volume": ("block_storage", "/os-quota-sets/%s", "quota_set"),
}
_OTHER_USERS = {"microversion": "2.10"}  # lets administrators read and write key pairs of other users


@dataclass
class ProjectState:
    """Actual objects by kind, and ids by kind and name."""

    objects: dict[str, list[Object]] = field(default_factory=dict)
    ids: dict[tuple[str, str], str] = field(default_factory=dict)
    domain: str = "default"


def fetch(cloud: Cloud, objects: dict[str, list[Object]], domain: str) -> ProjectState:
    """Read the actual state of ``objects`` in a domain. Raises UserError."""
    cloud.authorize()
    state = ProjectState(domain=_domain(cloud, domain))
    projects = {item["name"] for item in objects[PROJECT.kind]} | {item["project"] for item in objects[GRANT.kind]}
    projects |= {item["default_project"] for item in objects[USER.kind] if "default_project" in item}
    users = {item["name"] for item in objects[USER.kind]}
    _find(cloud, state, PROJECT, sorted(projects))
    _find(cloud, state, USER, sorted(users))
    names = {id: name for (kind, name), id in state.ids.items() if kind == PROJECT.kind}
    for user in state.objects[USER.kind]:
        user["default_project"] = names.get(user.pop("default_project_id"), "")
    _roles(cloud, state, objects, names)
    _quotas(cloud, state, objects)
    _key_pairs(cloud, state, objects)
    # Projects that only users and grants refer to are not managed.
    managed = {item["name"] for item in objects[PROJECT.kind]}
    state.objects[PROJECT.kind] = [item for item in state.objects[PROJECT.kind] if item["name"] in managed]
    return state


def _domain(cloud: Cloud, name: str) -> str:
    if name == "default":
        return name
    found = cloud.list("identity", "/domains", "domains", name=name)
    if not found:
        raise UserError("Cannot find domain '%s'. Correct the name, or create it first." % name)
    return str(found[0]["id"])


def _find(cloud: Cloud, state: ProjectState, family: Family, names: list[str]) -> None:
    path = "/%s" % family.plural

    def find(name: str) -> list[Object]:
        return cloud.list("identity", path, family.plural, name=name, domain_id=state.domain)

    state.objects[family.kind] = []
    for name, found in zip(names, cloud.map(find, names), strict=True):
        for raw in found:
            texts = {key: raw.get(key) or "" for key in ("description", "email", "default_project_id")}
            item = {"name": name, "uuid": raw["id"], "enabled": raw["enabled"], **texts}
            state.objects[family.kind].append(item)
            state.ids[family.kind, name] = raw["id"]


def _roles(cloud: Cloud, state: ProjectState, objects: dict[str, list[Object]], projects: dict[str, str]) -> None:
    state.objects[GRANT.kind] = []
    if not objects[GRANT.kind]:
        return
    roles = {raw["id"]: raw["name"] for raw in cloud.list("identity", "/roles", "roles")}
    state.ids.update((("role", name), id) for id, name in roles.items())
    for item in objects[GRANT.kind]:
        if item["role"] not in roles.values():
            raise UserError(
                "Cannot find role '%s' of user '%s'. Correct the name (existing roles: %s)."
                % (item["role"], item["user"], ", ".join(sorted(roles.values())))
            )
    users = state.objects[USER.kind]

    def find(user: Object) -> list[Object]:
        query = {"user.id": user["uuid"]}
        return cloud.list("identity", "/role_assignments", "role_assignments", **query)

    for user, found in zip(users, cloud.map(find, users), strict=True):
        for raw in found:
            project = projects.get(raw["scope"].get("project", {}).get("id", ""))
            if project and raw["role"]["id"] in roles:
                state.objects[GRANT.kind].append(grant(user["name"], project, roles[raw["role"]["id"]]))


def _quotas(cloud: Cloud, state: ProjectState, objects: dict[str, list[Object]]) -> None:
    """Read the desired quotas; others are not managed."""
    state.objects[QUOTA.kind] = []
    desired = sorted({(item["project"], item["service"]) for item in objects[QUOTA.kind]})
    existing = [each for each in desired if (PROJECT.kind, each[0]) in state.ids]

    def find(project_and_service: tuple[str, str]) -> Object:
        project, service = project_and_service
        name, path, key = _QUOTAS[service]
        found: Object = cloud.request(name, "GET", path % state.ids[PROJECT.kind, project])[key]
        return found

    limits = dict(zip(existing, cloud.map(find, existing), strict=True))
    for item in objects[QUOTA.kind]:
        found = limits.get((item["project"], item["service"]))
        if found is None:
            continue
        if item["resource"] not in found:
            raise UserError(
                "Cannot find %s quota '%s' of project '%s'. Correct the name (existing quotas: %s)."
                % (item["service"], item["resource"], item["project"], ", ".join(sorted(set(found) - {"id"})))
            )
        names = (item["project"], item["service"], item["resource"])
        state.objects[QUOTA.kind].append(quota(*names, found[item["resource"]]))


def _key_pairs(cloud: Cloud, state: ProjectState, objects: dict[str, list[Object]]) -> None:
    state.objects[KEY_PAIR.kind] = []
    owners = {item["user"] for item in objects[KEY_PAIR.kind]}
    users = [user for user in state.objects[USER.kind] if user["name"] in owners]

    def find(user: Object) -> list[Object]:
        found = cloud.request("compute", "GET", "/os-keypairs", params={"user_id": user["uuid"]}, **_OTHER_USERS)
        return [each["keypair"] for each in found["keypairs"]]

    for user, found in zip(users, cloud.map(find, users), strict=True):
        state.objects[KEY_PAIR.kind] += [key_pair(user["name"], raw["name"], raw["public_key"]) for raw in found]


class ProjectWriter(StepWriter):
    """Writer of projects and their users, in the order of dependencies; removals in reverse."""

    def __init__(self, cloud: Cloud, state: ProjectState) -> None:
        super().__init__(cloud, "identity")
        self._state = state

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write the steps and return the errors."""
        written = (Action.CREATE, Action.CHANGE)
        self.for_each(select(steps, GRANT, (Action.DELETE,)), self._revoke)
        self.for_each(select(steps, USER, (Action.DELETE,)), self._delete)
        self.for_each(select(steps, PROJECT, (Action.DELETE,)), self._delete)
        self.for_each(select(steps, PROJECT, written), self._project)
        self.for_each(select(steps, USER, written), self._user)
        self.for_each(select(steps, GRANT, written), self._grant)
        quotas: dict[tuple[str, str], list[Step]] = {}
        for step in select(steps, QUOTA, written):
            item = step.desired or {}
            quotas.setdefault((item["project"], item["service"]), []).append(step)
        self.cloud.map(self._set_quotas, list(quotas.values()))
        self.for_each(select(steps, KEY_PAIR, (Action.RECREATE,)), self._remove_key_pair)
        self.for_each(select(steps, KEY_PAIR, CREATIONS), self._key_pair)
        return self.errors

    def _id(self, family: Family, name: str) -> str:
        if (family.kind, name) not in self._state.ids:
            raise MissingError(family, name)
        return self._state.ids[family.kind, name]

    def _delete(self, step: Step) -> None:
        self.remove("/%s/%s" % (step.family.plural, (step.before or {})["uuid"]))

    def _save(self, step: Step, body: Object) -> None:
        kind, path = step.family.kind, "/%s" % step.family.plural
        if step.action is Action.CHANGE:
            self.write("PATCH", "%s/%s" % (path, (step.before or {})["uuid"]), json={kind: body})
            return
        body = {"domain_id": self._state.domain, "name": step.key, **body}
        id = self.write("POST", path, json={kind: body})[kind]["id"]
        self._state.ids[kind, step.key] = self.created_ids[kind, step.key] = id

    def _project(self, step: Step) -> None:
        item = step.desired or {}
        self._save(step, {name: item[name] for name in ("description", "enabled") if name in item})

    def _user(self, step: Step) -> None:
        """Write a user. Only a new one gets the password, since the actual password cannot be compared."""
        item = step.desired or {}
        names = ["description", "email", "enabled", *(["password"] if step.action is Action.CREATE else [])]
        body = {name: item[name] for name in names if name in item}
        if "default_project" in item:
            body["default_project_id"] = self._id(PROJECT, item["default_project"])
        self._save(step, body)

    def _grant(self, step: Step) -> None:
        self.write("PUT", self._role(step.desired or {}))

    def _revoke(self, step: Step) -> None:
        before = step.before or {}
        if self.cloud.identity() == (self._id(USER, before["user"]), self._id(PROJECT, before["project"])):
            raise CloudError("the credentials of this task use it. Log in to another project to revoke it.", 400)
        self.remove(self._role(before))

    def _role(self, item: Object) -> str:
        user, project = self._id(USER, item["user"]), self._id(PROJECT, item["project"])
        return "/projects/%s/users/%s/roles/%s" % (project, user, self._state.ids["role", item["role"]])

    def _set_quotas(self, steps: list[Step]) -> None:
        """Write all quotas of one project in one service, in one request."""
        items = [step.desired or {} for step in steps]
        service, path, key = _QUOTAS[items[0]["service"]]
        limits = {item["resource"]: item["limit"] for item in items}

        def write(step: Step) -> None:
            project = self._id(PROJECT, items[0]["project"])
            self.write("PUT", path % project, service, json={key: limits})

        self.attempt(steps[0], write)
        first = self.failed.get((QUOTA.kind, steps[0].key))
        if first:
            self.failed.update(
                ((QUOTA.kind, step.key), ItemError.of(step, first.message, first.failure, first.error_code))
                for step in steps[1:]
            )

    def _remove_key_pair(self, step: Step) -> None:
        before = step.before or {}
        query = {"user_id": self._id(USER, before["user"])}
        self.remove("/os-keypairs/%s" % before["name"], "compute", params=query, **_OTHER_USERS)
        self.removed.add(step_id(step))

    def _key_pair(self, step: Step) -> None:
        item = step.desired or {}
        body = {
            "name": item["name"],
            "public_key": item["public_key"],
            "type": "ssh",
            "user_id": self._id(USER, item["user"]),
        }
        self.write("POST", "/os-keypairs", "compute", json={"keypair": body}, **_OTHER_USERS)
