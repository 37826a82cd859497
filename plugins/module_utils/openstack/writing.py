# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing to Neutron: collections in bulk where it takes them so, the rest some at a time, and who failed why."""

from __future__ import annotations

import typing as t

from ..reconcile import Action, Family, ItemError, Object, Step
from . import bodies
from .attempts import Attempts, MissingError, of, place
from .client import Cloud, CloudError
from .leaving import GONE, goes_first
from .reading import Seen, owner_of
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
from .rules import canonical_rule, rule_of

CHUNK = 64  # objects in one request
_IN_BULK = (NETWORK, SUBNET, SECURITY_GROUP, PORT)
_TAGGED = (SUBNET_POOL, NETWORK, SUBNET, SECURITY_GROUP, PORT, ROUTER)
_ALL_ALIKE = ("OverQuota",)  # refusals that are no single object's


class Writer(Attempts):
    """Carries steps out. What goes goes first, but for what others hold on to until they are changed."""

    def __init__(self, cloud: Cloud, seen: Seen, owner: str) -> None:
        super().__init__(cloud, "network")
        self._seen = seen
        self._owner = owner
        self._tag = TAG + owner
        self._made: dict[tuple[str, str], Object] = {}  # kind and name -> what Neutron made
        self._raw = {raw["id"]: raw for kind in PATHS for raw in seen.raw.get(kind, ())}

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write; the errors are those of steps that were not carried out."""
        made = (Action.CREATE, Action.RECREATE)
        gone = [step for step in steps if step.action in GONE]
        first = [step for step in gone if goes_first(step, steps)]
        last = [step for step in gone if not goes_first(step, steps)]
        for family in (SHARE, INTERFACE, ROUTER, PORT, SUBNET, NETWORK):
            self.each(of(first, family, GONE), self._detach if family is INTERFACE else self._delete)
        for family in (ADDRESS_SCOPE, SUBNET_POOL, NETWORK, SUBNET, SECURITY_GROUP):
            self.each(of(steps, family, (Action.CHANGE,)), self._change)
            self._create(of(steps, family, made))
        groups = [step for step in of(steps, SECURITY_GROUP, (Action.CREATE, Action.CHANGE)) if step.wanted]
        self.each([step for step in groups if "rules" in (step.wanted or {})], self._set_rules)
        changed = of(steps, PORT, (Action.CHANGE,))
        self.each(_in_the_way(steps, changed), self._free)
        self.each(changed, self._change)
        self._create(of(steps, PORT, made))
        self.each(of(steps, ROUTER, (Action.CHANGE,)), self._change)
        self._create(of(steps, ROUTER, made))
        self._attach_all(of(steps, INTERFACE, made))
        self.each(of(steps, SHARE, made), self._share)
        for family in (SUBNET, NETWORK, SECURITY_GROUP, SUBNET_POOL, ADDRESS_SCOPE):
            self.each(of(last, family, GONE), self._delete)
        return self.errors

    def id(self, family: Family, name: str) -> str | None:
        """The id behind a name, of what was made just now too."""
        made = self._made.get((family.kind, name))
        return str(made["id"]) if made else self._seen.id(family, name)

    def _find(self, family: Family, name: str) -> str:
        id = self.id(family, name)
        if not id:
            raise MissingError(family, name)
        return id

    # What goes

    def _delete(self, step: Step) -> None:
        self.remove("%s/%s" % (PATHS[step.family.kind], (step.before or {})["uuid"]))
        if step.action is Action.RECREATE:
            self.removed.add(place(step))

    def _detach(self, step: Step) -> None:
        before = step.before or {}
        router = self._find(ROUTER, before["router"])
        path = "/routers/%s/remove_router_interface" % router
        try:
            self.write("PUT", path, json={"subnet_id": before["subnet_uuid"]})
        except CloudError as error:
            if error.status != 404:
                raise
        if step.action is Action.RECREATE:
            self.removed.add(place(step))

    # What comes

    def _create(self, steps: list[Step]) -> None:
        """Make the objects of one family."""
        if not steps:
            return
        family = steps[0].family
        ready: list[tuple[Step, Object]] = []
        for step in steps:
            self.attempt(step, lambda step: ready.append((step, bodies.new(step, self._find))))
        if family is PORT and ready and self._tags_in_bulk():
            for _step, body in ready:
                body["tags"] = [self._tag]
        many = [(step, body) for step, body in ready if _in_bulk(family, body)]
        chunks = [many[start : start + CHUNK] for start in range(0, len(many), CHUNK)]
        chunks += [[(step, body)] for step, body in ready if not _in_bulk(family, body)]
        # Chunks of ports would wait for each other's locks on the subnets.
        for group in [[chunk] for chunk in chunks] if family in _IN_BULK else [chunks]:
            self.cloud.together(self._post, group)
        if family in _TAGGED:
            self.each([step for step in steps if place(step) not in self.failed], self._tag_new)

    def _post(self, chunk: list[tuple[Step, Object]]) -> None:
        """Make the objects of one request; when one of them is refused, find out which by halves."""
        if [step for step, _body in chunk if self.given_up(step)]:
            return
        family = chunk[0][0].family
        path, one, many = PATHS[family.kind], CALLED[family.kind], COLLECTIONS[family.kind]
        try:
            if _in_bulk(family, chunk[0][1]):
                answer = self.write("POST", path, json={many: [body for _step, body in chunk]})
                found = answer[many]
            else:
                found = [self.write("POST", path, json={one: chunk[0][1]})[one]]
        except CloudError as error:
            alike = error.fatal or error.status == 403 or error.kind in _ALL_ALIKE or (error.status or 0) >= 500
            if alike or len(chunk) == 1:
                for step, _body in chunk:
                    self.fail(step, error)
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
            self.cloud.request("network", "GET", "/extensions/tag-ports-during-bulk-creation")
        except CloudError:  # what is wrong shows when ports are made
            return False
        return True

    def _tag_new(self, step: Step) -> None:
        raw = self._made[step.family.kind, step.key]
        if self._tag not in raw.get("tags", ()):
            self._set_tags(step, raw["id"], [self._tag])

    def _set_tags(self, step: Step, id: str, tags: list[str]) -> None:
        self.write("PUT", "%s/%s/tags" % (PATHS[step.family.kind], id), json={"tags": tags})

    # What changes

    def _change(self, step: Step) -> None:
        before = step.before or {}
        kind = step.family.kind
        body = bodies.changes(step, self._find)
        if body:
            self.write("PUT", "%s/%s" % (PATHS[kind], before["uuid"]), json={CALLED[kind]: body})
        if step.family in _TAGGED and before.get("owner") is None:
            tags = [*self._raw[before["uuid"]].get("tags", ()), self._tag]
            self._set_tags(step, before["uuid"], tags)

    def _free(self, step: Step) -> None:
        """Take the addresses of a port that others wait for."""
        path = "/ports/%s" % (step.before or {})["uuid"]
        self.write("PUT", path, json={"port": {"fixed_ips": []}})

    def _set_rules(self, step: Step) -> None:
        """The rules of one group: new ones first, so that what may pass all the time does."""
        raw = self._made.get((SECURITY_GROUP.kind, step.key)) or self._raw[(step.before or {})["uuid"]]
        names = self._seen.names(SECURITY_GROUP)
        names.update((made["id"], name) for (kind, name), made in self._made.items() if kind == SECURITY_GROUP.kind)
        there = {rule_key(rule_of(rule, names)): rule["id"] for rule in raw["security_group_rules"]}
        asked = {rule_key(rule): rule for rule in map(canonical_rule, (step.wanted or {})["rules"])}
        adding = [bodies.rule(rule, raw["id"], self._find) for key, rule in asked.items() if key not in there]
        if adding:
            self.write("POST", "/security-group-rules", json={"security_group_rules": adding})
        for key, id in there.items():
            if key not in asked:
                self.remove("/security-group-rules/%s" % id)

    def _attach_all(self, steps: list[Step]) -> None:
        """Those of one router one by one, since they lock it."""
        routers: dict[str, list[Step]] = {}
        for step in steps:
            routers.setdefault((step.wanted or {})["router"], []).append(step)

        def attach(own: list[Step]) -> None:
            for step in own:
                self.attempt(step, self._attach)

        self.cloud.together(attach, list(routers.values()))

    def _attach(self, step: Step) -> None:
        item = step.wanted or {}
        router, subnet = self._find(ROUTER, item["router"]), self._find(SUBNET, item["subnet"])
        path = "/routers/%s/add_router_interface" % router
        if "address" not in item and not item.get("any_address"):
            self.write("PUT", path, json={"subnet_id": subnet})
            return
        port = self._port_for(step, subnet)
        try:
            self.write("PUT", path, json={"port_id": port})
        except CloudError as error:
            if not error.fatal:
                self.remove("/ports/%s" % port)
            raise

    def _port_for(self, step: Step, subnet: str) -> str:
        """A port for an interface: one that was made by a run that ended before it was used, or a new one."""
        item = step.wanted or {}
        fixed = {"subnet_id": subnet, **({"ip_address": item["address"]} if "address" in item else {})}
        raw = self._made.get((SUBNET.kind, item["subnet"])) or self._raw[subnet]
        body = {"name": step.key, "network_id": raw["network_id"]}
        query = {**body, "project_id": self._seen.project}
        there = [
            port
            for port in self.cloud.list("network", PATHS[PORT.kind], COLLECTIONS[PORT.kind], **query)
            if not port["device_id"]
            and owner_of(port) in (None, self._owner)
            and any(fixed.items() <= each.items() for each in port["fixed_ips"])
        ]
        port = (
            there[0] if there else self.write("POST", "/ports", json={"port": {**body, "fixed_ips": [fixed]}})["port"]
        )
        if self._tag not in port.get("tags", ()):
            self.write("PUT", "/ports/%s/tags" % port["id"], json={"tags": [self._tag]})
        return str(port["id"])

    def _share(self, step: Step) -> None:
        item = step.wanted or {}
        project = self._seen.projects.get(item["project"])
        if not project:
            raise CloudError("there is no project '%s': make it first, or correct the name." % item["project"], 404)
        family = next(family for family in FAMILIES if family.kind == item["kind"])
        body = bodies.share(item, self._find(family, item["name"]), project)
        self.write("POST", PATHS[SHARE.kind], json={CALLED[SHARE.kind]: body})


def _in_bulk(family: Family, body: Object) -> bool:
    """Whether Neutron makes it in one request with others. Of ports in bulk it forgets the offload."""
    return family in _IN_BULK and "hardware_offload_type" not in body


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
