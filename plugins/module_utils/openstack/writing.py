# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing to Neutron: collections in bulk where it takes them so, the rest some at a time, and who failed why."""

from __future__ import annotations

import typing as t

from ..reconcile import Action, Failure, Family, ItemError, Object, Step
from . import bodies
from .client import Cloud, CloudError
from .reading import Seen, canonical_rule, rule_of
from .resources import (
    ADDRESS_SCOPE,
    CALLED,
    COLLECTIONS,
    FAMILIES,
    INTERFACE,
    NETWORK,
    PATHS,
    PORT,
    ROUTER,
    SECURITY_GROUP,
    SHARE,
    SUBNET,
    SUBNET_POOL,
    TAG,
    rule_key,
)

CHUNK = 64  # objects in one request
_IN_BULK = (NETWORK, SUBNET, SECURITY_GROUP, PORT)
_TAGGED = (SUBNET_POOL, NETWORK, SUBNET, SECURITY_GROUP, PORT, ROUTER)
_ALL_ALIKE = ("OverQuota",)  # refusals that are no single object's


class _MissingError(Exception):
    """What an object names is not there, because it could not be made."""

    def __init__(self, family: Family, name: str) -> None:
        super().__init__("%s '%s'" % (family.kind.replace("_", " "), name))


class Writer:
    """Carries steps out. What goes goes first, but for what others hold on to until they are changed."""

    def __init__(self, cloud: Cloud, seen: Seen, owner: str) -> None:
        self._cloud = cloud
        self._seen = seen
        self._tag = TAG + owner
        self._made: dict[tuple[str, str], Object] = {}  # kind and name -> what Neutron made
        self._errors: dict[tuple[str, str], ItemError] = {}
        self._removed: set[tuple[str, str]] = set()  # what is to be made anew
        self._fatal: CloudError | None = None
        self.wrote = False  # whether Neutron changed anything at all
        self._raw = {raw["id"]: raw for kind in PATHS for raw in seen.raw.get(kind, ())}

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write; the errors are those of steps that were not carried out."""
        gone = (Action.DELETE, Action.RECREATE)
        made = (Action.CREATE, Action.RECREATE)
        self._each(_of(steps, SHARE, gone), self._delete)
        self._each(_of(steps, INTERFACE, gone), self._detach)
        for family in (ROUTER, PORT, SUBNET, NETWORK):
            self._each(_of(steps, family, gone), self._delete)
        for family in (ADDRESS_SCOPE, SUBNET_POOL, NETWORK, SUBNET, SECURITY_GROUP):
            self._each(_of(steps, family, (Action.CHANGE,)), self._change)
            self._create(_of(steps, family, made))
        groups = [step for step in _of(steps, SECURITY_GROUP, (Action.CREATE, Action.CHANGE)) if step.wanted]
        self._each([step for step in groups if "rules" in (step.wanted or {})], self._set_rules)
        changed = _of(steps, PORT, (Action.CHANGE,))
        self._each(_in_the_way(steps, changed), self._free)
        self._each(changed, self._change)
        self._create(_of(steps, PORT, made))
        self._each(_of(steps, ROUTER, (Action.CHANGE,)), self._change)
        self._create(_of(steps, ROUTER, made))
        self._attach_all(_of(steps, INTERFACE, made))
        self._each(_of(steps, SHARE, made), self._share)
        for family in (SECURITY_GROUP, SUBNET_POOL, ADDRESS_SCOPE):
            self._each(_of(steps, family, gone), self._delete)
        return list(self._errors.values())

    # One step

    def _each(self, steps: list[Step], work: t.Callable[[Step], None]) -> None:
        """Do the work for steps that did not fail before, some at a time."""
        self._cloud.together(lambda step: self._attempt(step, work), steps)

    def _attempt(self, step: Step, work: t.Callable[[Step], None]) -> None:
        if self._given_up(step):
            return
        try:
            work(step)
        except CloudError as error:
            self._fail(step, error)
        except _MissingError as error:
            sentence = "%s was not tried, since %s is not there." % (_called(step), error)
            self._errors[_place(step)] = ItemError.of(step, sentence, Failure.NOT_TRIED)

    def _given_up(self, step: Step) -> bool:
        """Whether the step failed before, or there is nobody to ask any more."""
        place = _place(step)
        if self._fatal and place not in self._errors:
            left = Failure.HALF_DONE if place in self._removed else Failure.NOT_TRIED
            self._errors[place] = ItemError.of(step, self._fatal.sentence, left)
        return place in self._errors

    def _fail(self, step: Step, error: CloudError) -> None:
        place = _place(step)
        if error.fatal:
            error = self._fatal = self._fatal or error  # the first one tells, since the others are of the same cause
        verb = {Action.CREATE: "create", Action.DELETE: "remove", Action.CHANGE: "change"}.get(step.action, "make anew")
        sentence = error.sentence if error.fatal else "Cannot %s %s: %s" % (verb, _named(step), error.sentence)
        left = Failure.HALF_DONE if place in self._removed else Failure.REFUSED
        self._errors[place] = ItemError.of(step, sentence, left)

    def _write(self, method: str, path: str, **options: t.Any) -> t.Any:
        answer = self._cloud.request("network", method, path, **options)
        self.wrote = True
        return answer

    def _find(self, family: Family, name: str) -> str:
        made = self._made.get((family.kind, name))
        id = made["id"] if made else self._seen.id(family, name)
        if not id:
            raise _MissingError(family, name)
        return str(id)

    # What goes

    def _delete(self, step: Step) -> None:
        self._remove(PATHS[step.family.kind], (step.before or {})["uuid"])
        if step.action is Action.RECREATE:
            self._removed.add(_place(step))

    def _remove(self, path: str, id: str) -> None:
        try:
            self._write("DELETE", "%s/%s" % (path, id))
        except CloudError as error:
            if error.status != 404:  # gone already
                raise

    def _detach(self, step: Step) -> None:
        before = step.before or {}
        router = self._find(ROUTER, before["router"])
        path = "/routers/%s/remove_router_interface" % router
        try:
            self._write("PUT", path, json={"subnet_id": before["subnet_uuid"]})
        except CloudError as error:
            if error.status != 404:
                raise
        if step.action is Action.RECREATE:
            self._removed.add(_place(step))

    # What comes

    def _create(self, steps: list[Step]) -> None:
        """Make the objects of one family."""
        if not steps:
            return
        family = steps[0].family
        ready: list[tuple[Step, Object]] = []
        for step in steps:
            self._attempt(step, lambda step: ready.append((step, bodies.new(step, self._find))))
        if family is PORT and ready and self._tags_in_bulk():
            for _step, body in ready:
                body["tags"] = [self._tag]
        size = CHUNK if family in _IN_BULK else 1
        chunks = [ready[start : start + size] for start in range(0, len(ready), size)]
        # Chunks of ports would wait for each other's locks on the subnets.
        for group in [[chunk] for chunk in chunks] if family in _IN_BULK else [chunks]:
            self._cloud.together(self._post, group)
        if family in _TAGGED:
            self._each([step for step in steps if _place(step) not in self._errors], self._tag_new)

    def _post(self, chunk: list[tuple[Step, Object]]) -> None:
        """Make the objects of one request; when one of them is refused, find out which by halves."""
        if [step for step, _body in chunk if self._given_up(step)]:
            return
        family = chunk[0][0].family
        path, one, many = PATHS[family.kind], CALLED[family.kind], COLLECTIONS[family.kind]
        try:
            if family in _IN_BULK:
                answer = self._write("POST", path, json={many: [body for _step, body in chunk]})
                found = answer[many]
            else:
                found = [self._write("POST", path, json={one: chunk[0][1]})[one]]
        except CloudError as error:
            alike = error.fatal or error.status == 403 or error.kind in _ALL_ALIKE or (error.status or 0) >= 500
            if alike or len(chunk) == 1:
                for step, _body in chunk:
                    self._fail(step, error)
                return
            middle = len(chunk) // 2
            self._post(chunk[:middle])
            self._post(chunk[middle:])
            return
        for raw in found:
            self._made[family.kind, raw["name"]] = raw

    def _tags_in_bulk(self) -> bool:
        """Whether ports can be made with tags, by an extension driver that few clouds have on."""
        try:
            self._cloud.request("network", "GET", "/extensions/tag-ports-during-bulk-creation")
        except CloudError:  # what is wrong shows when ports are made
            return False
        return True

    def _tag_new(self, step: Step) -> None:
        raw = self._made[step.family.kind, step.key]
        if self._tag not in raw.get("tags", ()):
            self._set_tags(step, raw["id"], [self._tag])

    def _set_tags(self, step: Step, id: str, tags: list[str]) -> None:
        self._write("PUT", "%s/%s/tags" % (PATHS[step.family.kind], id), json={"tags": tags})

    # What changes

    def _change(self, step: Step) -> None:
        before = step.before or {}
        kind = step.family.kind
        body = bodies.changes(step, self._find)
        if body:
            self._write("PUT", "%s/%s" % (PATHS[kind], before["uuid"]), json={CALLED[kind]: body})
        if step.family in _TAGGED and before.get("owner") is None:
            tags = [*self._raw[before["uuid"]].get("tags", ()), self._tag]
            self._set_tags(step, before["uuid"], tags)

    def _free(self, step: Step) -> None:
        """Take the addresses of a port that others wait for."""
        path = "/ports/%s" % (step.before or {})["uuid"]
        self._write("PUT", path, json={"port": {"fixed_ips": []}})

    def _set_rules(self, step: Step) -> None:
        """The rules of one group: new ones first, so that what may pass all the time does."""
        raw = self._made.get((SECURITY_GROUP.kind, step.key)) or self._raw[(step.before or {})["uuid"]]
        names = self._seen.names(SECURITY_GROUP)
        names.update((made["id"], name) for (kind, name), made in self._made.items() if kind == SECURITY_GROUP.kind)
        there = {rule_key(rule_of(rule, names)): rule["id"] for rule in raw["security_group_rules"]}
        asked = {rule_key(rule): rule for rule in map(canonical_rule, (step.wanted or {})["rules"])}
        adding = [bodies.rule(rule, raw["id"], self._find) for key, rule in asked.items() if key not in there]
        if adding:
            self._write("POST", "/security-group-rules", json={"security_group_rules": adding})
        for key, id in there.items():
            if key not in asked:
                self._remove("/security-group-rules", id)

    def _attach_all(self, steps: list[Step]) -> None:
        """Those of one router one by one, since they lock it."""
        routers: dict[str, list[Step]] = {}
        for step in steps:
            routers.setdefault((step.wanted or {})["router"], []).append(step)

        def attach(own: list[Step]) -> None:
            for step in own:
                self._attempt(step, self._attach)

        self._cloud.together(attach, list(routers.values()))

    def _attach(self, step: Step) -> None:
        item = step.wanted or {}
        router, subnet = self._find(ROUTER, item["router"]), self._find(SUBNET, item["subnet"])
        path = "/routers/%s/add_router_interface" % router
        if "address" not in item and not item.get("any_address"):
            self._write("PUT", path, json={"subnet_id": subnet})
            return
        raw = self._made.get((SUBNET.kind, item["subnet"])) or self._raw[subnet]
        fixed = {"subnet_id": subnet, **({"ip_address": item["address"]} if "address" in item else {})}
        body = {"port": {"network_id": raw["network_id"], "fixed_ips": [fixed]}}
        port = self._write("POST", "/ports", json=body)["port"]["id"]
        try:
            self._write("PUT", path, json={"port_id": port})
        except CloudError as error:
            if not error.fatal:
                self._remove("/ports", port)
            raise

    def _share(self, step: Step) -> None:
        item = step.wanted or {}
        project = "*" if item["project"] == "*" else self._seen.projects.get(item["project"])
        if not project:
            raise CloudError("there is no project '%s': make it first, or correct the name." % item["project"], 404)
        family = next(family for family in FAMILIES if family.kind == item["kind"])
        body = bodies.share(item, self._find(family, item["name"]), project)
        self._write("POST", PATHS[SHARE.kind], json={CALLED[SHARE.kind]: body})


def _of(steps: t.Iterable[Step], family: Family, actions: t.Collection[Action]) -> list[Step]:
    return [step for step in steps if step.family is family and step.action in actions]


def _place(step: Step) -> tuple[str, str]:
    return step.family.kind, step.key


def _named(step: Step) -> str:
    return "%s '%s'" % (step.family.kind.replace("_", " "), step.key)


def _called(step: Step) -> str:
    name = _named(step)
    return name[0].upper() + name[1:]


def _in_the_way(steps: t.Iterable[Step], changed: list[Step]) -> list[Step]:
    """Ports that change their address, and have one now that another port is to get."""
    asked: dict[tuple[str, str], str] = {}
    for step in steps:
        if step.family is PORT and step.wanted is not None:
            asked.update(((step.wanted["network"], each), step.key) for each in step.wanted.get("addresses") or ())
    found = []
    for step in changed:
        before = step.before or {}
        takers = {asked.get((before["network"], each), step.key) for each in before["addresses"]}
        if takers - {step.key}:
            found.append(step)
    return found
