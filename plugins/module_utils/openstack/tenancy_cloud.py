# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and writing projects of tenants: Keystone, and the quotas and key pairs of the other services."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..reconcile import Action, Family, ItemError, Object, SentenceError, Step
from .attempts import Attempts, MissingError, of
from .client import Cloud, CloudError
from .tenancy import GRANT, KEY_PAIR, PROJECT, QUOTA, USER, grant, key_pair, quota

_QUOTAS = {  # where the services have them, and below which name
    "compute": ("compute", "/os-quota-sets/%s", "quota_set"),
    "network": ("network", "/quotas/%s", "quota"),
    "volume": ("block_storage", "/os-quota-sets/%s", "quota_set"),
}
_KEYS_OF_OTHERS = {"microversion": "2.10"}  # since when administrators see and make key pairs of others


@dataclass
class There:
    """What there is of what is asked for, by kind; ids by kind and name."""

    objects: dict[str, list[Object]] = field(default_factory=dict)
    ids: dict[tuple[str, str], str] = field(default_factory=dict)
    domain: str = "default"


def look(cloud: Cloud, objects: dict[str, list[Object]], domain: str) -> There:
    """What there is. Raises SentenceError."""
    cloud.authorize()
    there = There(domain=_domain(cloud, domain))
    projects = {item["name"] for item in objects[PROJECT.kind]} | {item["project"] for item in objects[GRANT.kind]}
    projects |= {item["default_project"] for item in objects[USER.kind] if "default_project" in item}
    users = {item["name"] for item in objects[USER.kind]}
    _find(cloud, there, PROJECT, sorted(projects))
    _find(cloud, there, USER, sorted(users))
    names = {id: name for (kind, name), id in there.ids.items() if kind == PROJECT.kind}
    for user in there.objects[USER.kind]:
        user["default_project"] = names.get(user.pop("default_project_id"), "")
    _roles(cloud, there, objects, names)
    _quotas(cloud, there, objects)
    _key_pairs(cloud, there, objects)
    asked = {item["name"] for item in objects[PROJECT.kind]}
    there.objects[PROJECT.kind] = [item for item in there.objects[PROJECT.kind] if item["name"] in asked]
    return there


def _domain(cloud: Cloud, name: str) -> str:
    if name == "default":
        return name
    found = cloud.list("identity", "/domains", "domains", name=name)
    if not found:
        raise SentenceError("There is no domain '%s': correct the name, or make it first." % name)
    return str(found[0]["id"])


def _find(cloud: Cloud, there: There, family: Family, names: list[str]) -> None:
    path = "/%s" % family.plural

    def find(name: str) -> list[Object]:
        return cloud.list("identity", path, family.plural, name=name, domain_id=there.domain)

    there.objects[family.kind] = []
    for name, found in zip(names, cloud.together(find, names), strict=True):
        for raw in found:
            told = {key: raw.get(key) or "" for key in ("description", "email", "default_project_id")}
            item = {"name": name, "uuid": raw["id"], "enabled": raw["enabled"], **told}
            there.objects[family.kind].append(item)
            there.ids[family.kind, name] = raw["id"]


def _roles(cloud: Cloud, there: There, objects: dict[str, list[Object]], projects: dict[str, str]) -> None:
    there.objects[GRANT.kind] = []
    if not objects[GRANT.kind]:
        return
    roles = {raw["id"]: raw["name"] for raw in cloud.list("identity", "/roles", "roles")}
    there.ids.update((("role", name), id) for id, name in roles.items())
    for item in objects[GRANT.kind]:
        if item["role"] not in roles.values():
            raise SentenceError(
                "There is no role '%s' for user '%s': correct the name (known are %s)."
                % (item["role"], item["user"], ", ".join(sorted(roles.values())))
            )
    users = there.objects[USER.kind]

    def find(user: Object) -> list[Object]:
        query = {"user.id": user["uuid"]}
        return cloud.list("identity", "/role_assignments", "role_assignments", **query)

    for user, found in zip(users, cloud.together(find, users), strict=True):
        for raw in found:
            project = projects.get(raw["scope"].get("project", {}).get("id", ""))
            if project and raw["role"]["id"] in roles:
                there.objects[GRANT.kind].append(grant(user["name"], project, roles[raw["role"]["id"]]))


def _quotas(cloud: Cloud, there: There, objects: dict[str, list[Object]]) -> None:
    """Those that are asked about; the other ones are nobody's concern."""
    there.objects[QUOTA.kind] = []
    asked = sorted({(item["project"], item["service"]) for item in objects[QUOTA.kind]})
    known = [each for each in asked if (PROJECT.kind, each[0]) in there.ids]

    def find(place: tuple[str, str]) -> Object:
        project, service = place
        name, path, key = _QUOTAS[service]
        found: Object = cloud.request(name, "GET", path % there.ids[PROJECT.kind, project])[key]
        return found

    limits = dict(zip(known, cloud.together(find, known), strict=True))
    for item in objects[QUOTA.kind]:
        told = limits.get((item["project"], item["service"]))
        if told is None:
            continue
        if item["resource"] not in told:
            raise SentenceError(
                "There is no %s quota '%s' for project '%s': known are %s."
                % (item["service"], item["resource"], item["project"], ", ".join(sorted(set(told) - {"id"})))
            )
        names = (item["project"], item["service"], item["resource"])
        there.objects[QUOTA.kind].append(quota(*names, told[item["resource"]]))


def _key_pairs(cloud: Cloud, there: There, objects: dict[str, list[Object]]) -> None:
    there.objects[KEY_PAIR.kind] = []
    owners = {item["user"] for item in objects[KEY_PAIR.kind]}
    users = [user for user in there.objects[USER.kind] if user["name"] in owners]

    def find(user: Object) -> list[Object]:
        found = cloud.request("compute", "GET", "/os-keypairs", params={"user_id": user["uuid"]}, **_KEYS_OF_OTHERS)
        return [each["keypair"] for each in found["keypairs"]]

    for user, found in zip(users, cloud.together(find, users), strict=True):
        there.objects[KEY_PAIR.kind] += [key_pair(user["name"], raw["name"], raw["public_key"]) for raw in found]


class TenancyWriter(Attempts):
    """Carries steps out, in the order in which objects depend on each other, and back when they go."""

    def __init__(self, cloud: Cloud, there: There) -> None:
        super().__init__(cloud, "identity")
        self._there = there

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write; the errors are those of steps that were not carried out."""
        comes = (Action.CREATE, Action.CHANGE)
        self.each(of(steps, GRANT, (Action.DELETE,)), self._revoke)
        self.each(of(steps, USER, (Action.DELETE,)), self._delete)
        self.each(of(steps, PROJECT, (Action.DELETE,)), self._delete)
        self.each(of(steps, PROJECT, comes), self._project)
        self.each(of(steps, USER, comes), self._user)
        self.each(of(steps, GRANT, comes), self._grant)
        quotas: dict[tuple[str, str], list[Step]] = {}
        for step in of(steps, QUOTA, comes):
            item = step.wanted or {}
            quotas.setdefault((item["project"], item["service"]), []).append(step)
        self.cloud.together(self._limit, list(quotas.values()))
        self.each(of(steps, KEY_PAIR, (Action.RECREATE,)), self._forget)
        self.each(of(steps, KEY_PAIR, (Action.CREATE, Action.RECREATE)), self._key_pair)
        return self.errors

    def _id(self, family: Family, name: str) -> str:
        if (family.kind, name) not in self._there.ids:
            raise MissingError(family, name)
        return self._there.ids[family.kind, name]

    def _delete(self, step: Step) -> None:
        self.remove("/%s/%s" % (step.family.plural, (step.before or {})["uuid"]))

    def _save(self, step: Step, body: Object) -> None:
        kind, path = step.family.kind, "/%s" % step.family.plural
        if step.action is Action.CHANGE:
            self.write("PATCH", "%s/%s" % (path, (step.before or {})["uuid"]), json={kind: body})
            return
        body = {"domain_id": self._there.domain, "name": step.key, **body}
        self._there.ids[kind, step.key] = self.write("POST", path, json={kind: body})[kind]["id"]

    def _project(self, step: Step) -> None:
        item = step.wanted or {}
        self._save(step, {name: item[name] for name in ("description", "enabled") if name in item})

    def _user(self, step: Step) -> None:
        """A password is told to a new user only: whether an old one is right cannot be asked."""
        item = step.wanted or {}
        names = ["description", "email", "enabled", *(["password"] if step.action is Action.CREATE else [])]
        body = {name: item[name] for name in names if name in item}
        if "default_project" in item:
            body["default_project_id"] = self._id(PROJECT, item["default_project"])
        self._save(step, body)

    def _grant(self, step: Step) -> None:
        self.write("PUT", self._role(step.wanted or {}))

    def _revoke(self, step: Step) -> None:
        before = step.before or {}
        if self.cloud.who() == (self._id(USER, before["user"]), self._id(PROJECT, before["project"])):
            raise CloudError("this is asked by that role: log in to another project to take it back.", 400)
        self.remove(self._role(before))

    def _role(self, item: Object) -> str:
        user, project = self._id(USER, item["user"]), self._id(PROJECT, item["project"])
        return "/projects/%s/users/%s/roles/%s" % (project, user, self._there.ids["role", item["role"]])

    def _limit(self, steps: list[Step]) -> None:
        """All limits of one project at one service, in one request."""
        items = [step.wanted or {} for step in steps]
        service, path, key = _QUOTAS[items[0]["service"]]
        limits = {item["resource"]: item["limit"] for item in items}

        def write(step: Step) -> None:
            project = self._id(PROJECT, items[0]["project"])
            self.write("PUT", path % project, service, json={key: limits})

        self.attempt(steps[0], write)
        first = self.failed.get((QUOTA.kind, steps[0].key))
        if first:
            self.failed.update(
                ((QUOTA.kind, step.key), ItemError.of(step, first.sentence, first.failure)) for step in steps[1:]
            )

    def _forget(self, step: Step) -> None:
        before = step.before or {}
        query = {"user_id": self._id(USER, before["user"])}
        self.remove("/os-keypairs/%s" % before["name"], "compute", params=query, **_KEYS_OF_OTHERS)
        self.removed.add((step.family.kind, step.key))

    def _key_pair(self, step: Step) -> None:
        item = step.wanted or {}
        body = {
            "name": item["name"],
            "public_key": item["public_key"],
            "type": "ssh",
            "user_id": self._id(USER, item["user"]),
        }
        self.write("POST", "/os-keypairs", "compute", json={"keypair": body}, **_KEYS_OF_OTHERS)
