# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writer of Neutron objects, in bulk where Neutron supports it."""

from __future__ import annotations

import typing as t

from ...reconcile import Action, Family, ItemError, Object, Step, UserError
from ..common.client import OVER_QUOTA, Cloud, CloudError, RejectedError
from ..common.steps import CREATIONS, REMOVALS, select, step_id
from ..common.tags import TAG, owner_of
from ..common.writer import MissingError, StepWriter
from . import request_bodies
from .deletion import is_removed_first
from .families import (
    ADDRESS_SCOPE,
    COLLECTIONS,
    FAMILIES,
    INTERFACE,
    NETWORK,
    PATHS,
    PORT,
    RESOURCES,
    ROUTER,
    SECURITY_GROUP,
    SHARE,
    SUBNET,
    SUBNET_POOL,
)
from .parse import NetworkState
from .security_rules import canonical_rule, parse_rule, rule_key

_CHUNK = 64  # objects in one request
# Neutron records the addresses of all ports of a request before it creates the ports. If it is killed in between, the
# records remain. Small requests limit their number.
_PORT_CHUNK = 16
_ADDRESS_IN_USE = "IpAddressAlreadyAllocated"  # type of an error of Neutron, with status 409
_BULK_FAMILIES = (NETWORK, SUBNET, SECURITY_GROUP, PORT)
_TAGGED_FAMILIES = (SUBNET_POOL, NETWORK, SUBNET, SECURITY_GROUP, PORT, ROUTER)


class NetworkWriter(StepWriter):
    """Writer of Neutron objects. It removes objects first, except those that others use until they are changed."""

    def __init__(self, cloud: Cloud, state: NetworkState, owner: str) -> None:
        super().__init__(cloud, "network")
        self._state = state
        self._owner = owner
        self._tag = TAG + owner
        self._created: dict[tuple[str, str], Object] = {}  # kind and name -> object of the API
        self._raw = {raw["id"]: raw for kind in PATHS for raw in state.raw.get(kind, ())}

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write the steps and return the errors."""
        removals = [step for step in steps if step.action in REMOVALS]
        first = [step for step in removals if is_removed_first(step, steps)]
        last = [step for step in removals if not is_removed_first(step, steps)]
        for family in (SHARE, INTERFACE, ROUTER, PORT, SUBNET, NETWORK):
            self.for_each(select(first, family, REMOVALS), self._detach if family is INTERFACE else self._delete)
        for family in (ADDRESS_SCOPE, SUBNET_POOL, NETWORK, SUBNET, SECURITY_GROUP):
            self.for_each(select(steps, family, (Action.CHANGE,)), self._change)
            self._create(select(steps, family, CREATIONS))
        groups = select(steps, SECURITY_GROUP, (Action.CREATE, Action.CHANGE))
        self.for_each([step for step in groups if "rules" in (step.desired or {})], self._set_rules)
        changed = select(steps, PORT, (Action.CHANGE,))
        self.for_each(_blocking_ports(steps, changed), self._release_addresses)
        self.for_each(changed, self._change)
        self._create(select(steps, PORT, CREATIONS))
        self.for_each(select(steps, ROUTER, (Action.CHANGE,)), self._change)
        self._create(select(steps, ROUTER, CREATIONS))
        self._attach_all(select(steps, INTERFACE, CREATIONS))
        self.for_each(select(steps, SHARE, CREATIONS), self._create_share)
        for family in (SUBNET, NETWORK, SECURITY_GROUP, SUBNET_POOL, ADDRESS_SCOPE):
            self.for_each(select(last, family, REMOVALS), self._delete)
        return self.errors

    def fail(self, step: Step, error: UserError) -> None:
        """Record the error of a step, with a remedy for an address that is in use although no port of the plan has it.

        Neutron records an address before other clients can read its port. So the record may be one of another task,
        and a port with ``address_choices`` gets another address from the next plan.
        """
        if step.family is PORT and isinstance(error, CloudError) and error.kind == _ADDRESS_IN_USE:
            item = step.desired or {}
            if item.get("address_choices"):
                self._state.rejected_addresses.update((item["network"], each) for each in item.get("addresses") or ())
            else:
                error = _explained(error)
        super().fail(step, error)

    def id(self, family: Family, name: str) -> str | None:
        """Return the id of an object, including one that was just created; None when it does not exist."""
        created = self._created.get((family.kind, name))
        return str(created["id"]) if created else self._state.id(family, name)

    def _find(self, family: Family, name: str) -> str:
        id = self.id(family, name)
        if not id:
            raise MissingError(family, name)
        return id

    def _delete(self, step: Step) -> None:
        self.remove("%s/%s" % (PATHS[step.family.kind], (step.before or {})["uuid"]))
        if step.action is Action.RECREATE:
            self.removed.add(step_id(step))

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
            self.removed.add(step_id(step))

    def _create(self, steps: list[Step]) -> None:
        """Create the objects of one family."""
        if not steps:
            return
        family = steps[0].family
        ready: list[tuple[Step, Object]] = []
        for step in steps:
            self.attempt(step, lambda step: ready.append((step, request_bodies.creation_body(step, self._find))))
        if family is PORT and ready and self._supports_tags_on_creation():
            for _step, body in ready:
                body["tags"] = [self._tag]
        bulk = [(step, body) for step, body in ready if _is_bulk(family, body)]
        size = _PORT_CHUNK if family is PORT else _CHUNK
        chunks = [bulk[start : start + size] for start in range(0, len(bulk), size)]
        chunks += [[(step, body)] for step, body in ready if not _is_bulk(family, body)]
        # Neutron locks the subnets of new ports, so concurrent chunks would block each other.
        for group in [[chunk] for chunk in chunks] if family in _BULK_FAMILIES else [chunks]:
            self.cloud.map(self._post, group)
        if family in _TAGGED_FAMILIES:
            self.for_each([step for step in steps if step_id(step) not in self.failed], self._tag_created)

    def _post(self, chunk: list[tuple[Step, Object]]) -> None:
        """Create the objects of one request. When Neutron rejects it, split it in halves to find the cause."""
        if [step for step, _body in chunk if self.is_skipped(step)]:
            return
        family = chunk[0][0].family
        path, one, many = PATHS[family.kind], RESOURCES[family.kind], COLLECTIONS[family.kind]
        try:
            if _is_bulk(family, chunk[0][1]):
                created = self.write("POST", path, json={many: [body for _step, body in chunk]})[many]
            else:
                created = [self.write("POST", path, json={one: chunk[0][1]})[one]]
        except CloudError as error:
            # Errors of a whole request rather than of one object.
            common = error.fatal or error.status == 403 or error.kind == OVER_QUOTA or (error.status or 0) >= 500
            if common or len(chunk) == 1:
                for step, _body in chunk:
                    self.fail(step, error)
                return
            middle = len(chunk) // 2
            self._post(chunk[:middle])
            self._post(chunk[middle:])
            return
        for raw in created:
            self._created[family.kind, raw["name"]] = raw
            self.created_ids[family.kind, raw["name"]] = raw["id"]

    def _supports_tags_on_creation(self) -> bool:
        """Return whether new ports can have tags, which takes an extension driver that few clouds enable."""
        try:
            self.cloud.request("network", "GET", "/extensions/tag-ports-during-bulk-creation")
        except CloudError:  # an error other than 404 recurs when the ports are created
            return False
        return True

    def _tag_created(self, step: Step) -> None:
        raw = self._created[step.family.kind, step.key]
        if self._tag not in raw.get("tags", ()):
            self._set_tags(step, raw["id"], [self._tag])

    def _set_tags(self, step: Step, id: str, tags: list[str]) -> None:
        self.write("PUT", "%s/%s/tags" % (PATHS[step.family.kind], id), json={"tags": tags})

    def _change(self, step: Step) -> None:
        before = step.before or {}
        kind = step.family.kind
        body = request_bodies.change_body(step, self._find)
        if body:
            self.write("PUT", "%s/%s" % (PATHS[kind], before["uuid"]), json={RESOURCES[kind]: body})
        if step.family in _TAGGED_FAMILIES and before.get("owner") is None:
            tags = [*self._raw[before["uuid"]].get("tags", ()), self._tag]
            self._set_tags(step, before["uuid"], tags)

    def _release_addresses(self, step: Step) -> None:
        """Remove the addresses of a port that another port gets."""
        path = "/ports/%s" % (step.before or {})["uuid"]
        self.write("PUT", path, json={"port": {"fixed_ips": []}})

    def _set_rules(self, step: Step) -> None:
        """Write the rules of one group, new ones first, so that allowed traffic is never interrupted."""
        raw = self._created.get((SECURITY_GROUP.kind, step.key)) or self._raw[(step.before or {})["uuid"]]
        names = self._state.names(SECURITY_GROUP)
        names.update((made["id"], name) for (kind, name), made in self._created.items() if kind == SECURITY_GROUP.kind)
        actual = {rule_key(parse_rule(rule, names)): rule["id"] for rule in raw["security_group_rules"]}
        desired = {rule_key(rule): rule for rule in map(canonical_rule, (step.desired or {})["rules"])}
        new = [rule for key, rule in desired.items() if key not in actual]
        bodies = [request_bodies.rule_body(rule, raw["id"], self._find) for rule in new]
        if bodies:
            self.write("POST", "/security-group-rules", json={"security_group_rules": bodies})
        for key, id in actual.items():
            if key not in desired:
                self.remove("/security-group-rules/%s" % id)

    def _attach_all(self, steps: list[Step]) -> None:
        """Add router interfaces. Those of one router are added in turn, since each request locks the router."""
        routers: dict[str, list[Step]] = {}
        for step in steps:
            routers.setdefault((step.desired or {})["router"], []).append(step)

        def attach(interfaces: list[Step]) -> None:
            for step in interfaces:
                self.attempt(step, self._attach)

        self.cloud.map(attach, list(routers.values()))

    def _attach(self, step: Step) -> None:
        item = step.desired or {}
        router, subnet = self._find(ROUTER, item["router"]), self._find(SUBNET, item["subnet"])
        path = "/routers/%s/add_router_interface" % router
        if "address" not in item and not item.get("any_address"):
            self.created_ids[step_id(step)] = self.write("PUT", path, json={"subnet_id": subnet})["port_id"]
            return
        port = self._port_for(step, subnet)
        try:
            self.write("PUT", path, json={"port_id": port})
        except CloudError as error:
            if not error.fatal:
                self.remove("/ports/%s" % port)
            raise
        self.created_ids[step_id(step)] = port

    def _port_for(self, step: Step, subnet: str) -> str:
        """Return the id of the port for an interface: an unused one of an interrupted run, or a new one."""
        item = step.desired or {}
        fixed = {"subnet_id": subnet, **({"ip_address": item["address"]} if "address" in item else {})}
        raw = self._created.get((SUBNET.kind, item["subnet"])) or self._raw[subnet]
        body = {"name": step.key, "network_id": raw["network_id"]}
        query = {**body, "project_id": self._state.project}
        unused = [
            port
            for port in self.cloud.list("network", PATHS[PORT.kind], COLLECTIONS[PORT.kind], **query)
            if not port["device_id"]
            and owner_of(port) in (None, self._owner)
            and any(fixed.items() <= each.items() for each in port["fixed_ips"])
        ]
        if unused:
            port = unused[0]
        else:
            port = self.write("POST", "/ports", json={"port": {**body, "fixed_ips": [fixed]}})["port"]
        if self._tag not in port.get("tags", ()):
            self.write("PUT", "/ports/%s/tags" % port["id"], json={"tags": [self._tag]})
        return str(port["id"])

    def _create_share(self, step: Step) -> None:
        item = step.desired or {}
        project = self._state.projects.get(item["project"])
        if not project:
            raise UserError("project '%s' does not exist. Create it first, or correct the name." % item["project"])
        family = next(family for family in FAMILIES if family.kind == item["kind"])
        body = request_bodies.share_body(item, self._find(family, item["name"]), project)
        made = self.write("POST", PATHS[SHARE.kind], json={RESOURCES[SHARE.kind]: body})
        self.created_ids[step_id(step)] = made[RESOURCES[SHARE.kind]]["id"]


def _explained(error: CloudError) -> CloudError:
    return RejectedError(
        "%s If no port has this address, a killed Neutron left its record. Delete the record from the table "
        "ipamallocations of Neutron, or remove the subnet with all its ports. Then run the task again." % error.message,
        error.status,
        error.kind,
    )


def _is_bulk(family: Family, body: Object) -> bool:
    """Return whether Neutron can create an object in bulk. Bulk creation of ports ignores the offload type."""
    return family in _BULK_FAMILIES and "hardware_offload_type" not in body


def _blocking_ports(steps: t.Iterable[Step], changed: list[Step]) -> list[Step]:
    """Return the changed ports that have an address that another port gets."""
    users: dict[tuple[str, str], str] = {}
    for step in steps:
        if step.family is PORT and step.desired is not None:
            users.update(((step.desired["network"], each), step.key) for each in step.desired.get("addresses") or ())
    found = []
    for step in changed:
        before = step.before or {}
        takers = {users.get((before["network"], each), step.key) for each in before["addresses"]}
        if takers - {step.key}:
            found.append(step)
    return found
