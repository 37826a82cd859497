# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ironic API: reads and writes of nodes and ports, and changes of their provision state."""

from __future__ import annotations

import time
import typing as t

from ...reconcile import Action, ItemError, Object, Step, UserError
from ..common.client import Cloud, CloudError, RejectedError
from ..common.steps import CREATIONS, REMOVALS, select, step_id
from ..common.writer import MissingError, StepWriter
from .families import INTERFACES, NODE, OWNER_KEY, PORT, SERVICE, WHOLE
from .plan import AVAILABLE, ENROLL, MANAGEABLE, PORTS_OPEN, VERIFYING, State, bmc_fault, parse_node, parse_port

_MINOR, _MINOR_WITH_POWER = 61, 95  # API versions: with all fields but disable_power_off, and with that one too
_NODE_FIELDS = (
    *("uuid", "name", "extra", "driver", "driver_info", "properties", "traits", "resource_class", "description"),
    *("provision_state", "power_state", "maintenance", "instance_uuid", "automated_clean"),
    *("%s_interface" % name for name in INTERFACES),
)
_PORT_FIELDS = (
    *("uuid", "address", "node_uuid", "physical_network", "pxe_enabled", "local_link_connection"),
    "portgroup_uuid",
)
_LOCK_SECONDS = 30.0  # Ironic locks a node while it reads its power state
_LOCK_INTERVAL = 0.5


class Ironic:
    """Requests to Ironic with one API version."""

    def __init__(self, cloud: Cloud, desired: list[Object]) -> None:
        """Raise UserError when the desired nodes need a later version than Ironic has."""
        self.cloud = cloud
        latest = cloud.max_microversion(SERVICE) or (1, _MINOR)
        self._with_power = latest >= (1, _MINOR_WITH_POWER)
        protected = [item["name"] for item in desired if "disable_power_off" in item]
        if protected and not self._with_power:
            raise UserError(
                "Cannot set disable_power_off of node '%s': Ironic supports it since API version 1.%d, and this one "
                "has 1.%d. Upgrade Ironic to 28.0 (2025.1) or later, or omit the option."
                % (protected[0], _MINOR_WITH_POWER, latest[1])
            )

    @property
    def version(self) -> Object:
        """Option of a request."""
        return {"microversion": "1.%d" % (_MINOR_WITH_POWER if self._with_power else _MINOR)}

    def get(self, path: str, **query: t.Any) -> Object:
        """Read a resource."""
        return t.cast("Object", self.cloud.request(SERVICE, "GET", path, params=query, **self.version))

    def nodes(self) -> list[Object]:
        """Read all nodes."""
        fields = (*_NODE_FIELDS, "disable_power_off") if self._with_power else _NODE_FIELDS
        return self._list("nodes", fields)

    def ports(self) -> list[Object]:
        """Read all ports."""
        return self._list("ports", _PORT_FIELDS)

    def _list(self, collection: str, fields: t.Iterable[str]) -> list[Object]:
        query = {"fields": ",".join(fields)}
        found: list[Object] = []
        while True:
            body = self.get("/" + collection, **query)
            found += body[collection]
            if not body.get("next"):
                return found
            query["marker"] = body[collection][-1]["uuid"]


def fetch(ironic: Ironic, objects: dict[str, list[Object]], pod: str) -> State:
    """Read the desired nodes, those of the POD and all that have desired ports."""
    nodes = {item["name"]: item for item in objects[NODE.kind]}
    ports = {item["mac"]: item for item in objects[PORT.kind]}
    read = ironic.cloud.map(lambda read: read(), [ironic.nodes, ironic.ports])
    found = [parse_node(raw, nodes.get(raw["name"], {})) for raw in read[0]]
    state = State(names={node["uuid"]: node["name"] for node in found})
    state.nodes = [node for node in found if node["owner"] == pod or node["name"] in nodes]
    names = state.by_name
    for raw in read[1]:
        port = parse_port(raw, state.names, ports.get(raw["address"], {}))
        if port["mac"] in ports or port["node"] in names:
            state.ports.append(port)
    return state


class NodeWriter(StepWriter):
    """Writer of nodes and ports. It waits until Ironic has changed the provision state of a node."""

    def __init__(self, ironic: Ironic, state: State, owner: str, timeout: float) -> None:
        """Wait at most ``timeout`` seconds for each change of a provision state."""
        super().__init__(ironic.cloud, SERVICE)
        self._ironic = ironic
        self._owner = owner
        self._timeout = timeout
        self._ids = {node["name"]: node["uuid"] for node in state.nodes}
        self._closed = {  # names of nodes whose ports change only in maintenance
            node["name"]
            for node in state.nodes
            if node["provision_state"] not in PORTS_OPEN and not node["maintenance"]
        }

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write the steps and return the errors."""
        self.for_each(select(steps, PORT, REMOVALS), self._remove_port)
        self.for_each(select(steps, NODE, REMOVALS), self._remove_node)
        self.for_each(select(steps, NODE, CREATIONS), self._create_node)
        self.for_each(select(steps, NODE, [Action.CHANGE]), self._change_node)
        changing = [step for step in select(steps, NODE, [*CREATIONS, Action.CHANGE]) if _needs_state(step)]
        self._verify([step for step in changing if _state(step) != MANAGEABLE])
        self._closed.difference_update(step.key for step in changing)
        self.for_each(select(steps, PORT, CREATIONS), self._create_port)
        self._change_ports(select(steps, PORT, [Action.CHANGE]))
        self._provide([step for step in changing if (step.desired or {})["state"] == AVAILABLE])
        return self.errors

    def _send(self, method: str, path: str, **options: t.Any) -> t.Any:
        """Send a request, again as long as Ironic has locked the node."""
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                return self.write(method, path, **options, **self._ironic.version)
            except RejectedError as error:
                if error.status != 409 or "is locked" not in error.message or time.monotonic() > deadline:
                    raise
            time.sleep(_LOCK_INTERVAL)

    def _delete(self, path: str) -> None:
        try:
            self._send("DELETE", path)
        except CloudError as error:
            if error.status != 404:
                raise

    def _create_node(self, step: Step) -> None:
        item = step.desired or {}
        body = {name: item[name] for name in WHOLE if name in item}
        body.update(name=step.key, extra={OWNER_KEY: self._owner}, driver_info=_secret_info(item))
        body["properties"] = item.get("properties", {})
        body.update({"%s_interface" % name: value for name, value in item.get("interfaces", {}).items()})
        id = self._send("POST", "/nodes", json=body)["uuid"]
        self._ids[step.key] = self.created_ids[step_id(step)] = id
        if item.get("traits"):
            self._set_traits(id, item)

    def _change_node(self, step: Step) -> None:
        before, item = step.before or {}, step.desired or {}
        changed = {f.name for f in step.changed_fields}
        values = {"/" + name: item[name] for name in WHOLE if name in changed}
        for name, prefix, suffix in (("properties", "/properties/", ""), ("interfaces", "/", "_interface")):
            pairs = item[name].items() if name in changed else ()
            values.update({prefix + _escaped(key) + suffix: value for key, value in pairs})
        # A node that Ironic has not verified may have a wrong password, which cannot be read.
        if changed & {"bmc", "password_written"} or before["provision_state"] == ENROLL:
            values.update({"/driver_info/" + key: value for key, value in _secret_info(item).items()})
        if values:
            patch = [{"op": "add", "path": path, "value": value} for path, value in values.items()]
            self._send("PATCH", "/nodes/" + before["uuid"], json=patch)
        if "traits" in changed:
            self._set_traits(before["uuid"], item)

    def _set_traits(self, id: str, item: Object) -> None:
        self._send("PUT", "/nodes/%s/traits" % id, json={"traits": item["traits"]})

    def _remove_node(self, step: Step) -> None:
        self._delete("/nodes/" + (step.before or {})["uuid"])

    def _create_port(self, step: Step) -> None:
        item = step.desired or {}
        node = self._ids.get(item["node"])
        if node is None:
            raise MissingError(NODE, item["node"])
        body = {"address": step.key, "node_uuid": node, **_port_values(item)}
        self.created_ids[step_id(step)] = self._send("POST", "/ports", json=body)["uuid"]

    def _change_ports(self, steps: list[Step]) -> None:
        """Change ports. Those of one node follow each other, because the end of a maintenance concerns all of them."""
        by_node: dict[str, list[Step]] = {}
        for step in steps:
            by_node.setdefault((step.desired or {})["node"], []).append(step)

        def change(node: str) -> None:
            for step in by_node[node]:
                self.attempt(step, self._change_closed_port if node in self._closed else self._change_port)

        self.cloud.map(change, list(by_node))

    def _change_closed_port(self, step: Step) -> None:
        """Change a port while its node is in maintenance. Ironic rejects the change otherwise."""
        node = (step.desired or {})["node"]
        path = "/nodes/%s/maintenance" % self._ids[node]
        self._send("PUT", path, json={"reason": "openipu.pod changes port %s" % step.key})
        try:
            self._change_port(step)
        finally:
            try:
                self._send("DELETE", path)
            except CloudError as error:
                raise CloudError(
                    "node '%s' stays in maintenance: %s End it with: openstack baremetal node maintenance unset %s"
                    % (node, error.message, node),
                    error.status,
                ) from None

    def _change_port(self, step: Step) -> None:
        changed = {f.name for f in step.changed_fields}
        values = _port_values({name: value for name, value in (step.desired or {}).items() if name in changed})
        patch = [{"op": "add", "path": "/" + name, "value": value} for name, value in values.items()]
        self._send("PATCH", "/ports/" + (step.before or {})["uuid"], json=patch)

    def _remove_port(self, step: Step) -> None:
        self._delete("/ports/" + (step.before or {})["uuid"])
        if step.action is Action.RECREATE:
            self.removed.add(step_id(step))

    def _verify(self, steps: list[Step]) -> None:
        """Make nodes manageable. All requests are sent before the first wait."""
        self.for_each([step for step in steps if _state(step) != VERIFYING], lambda step: self._go(step, "manage"))
        self.for_each(steps, lambda step: self._wait_for(step, MANAGEABLE, VERIFYING))

    def _provide(self, steps: list[Step]) -> None:
        """Make manageable nodes available."""
        self.for_each(steps, lambda step: self._go(step, "provide"))
        self.for_each(steps, lambda step: self._wait_for(step, AVAILABLE, "cleaning", "clean wait"))

    def _go(self, step: Step, verb: str) -> None:
        self._send("PUT", "/nodes/%s/states/provision" % self._ids[step.key], json={"target": verb})

    def _wait_for(self, step: Step, target: str, *under_way: str) -> None:
        """Wait for a state. Raises CloudError with the error of Ironic when the node enters another one."""
        path = "/nodes/%s" % self._ids[step.key]

        def is_done() -> bool:
            raw = self._ironic.get(path, fields="provision_state,target_provision_state,last_error,driver_info")
            if raw["provision_state"] == target:
                return True
            # The state before a change is also that after its failure, such as enroll.
            if raw["provision_state"] in under_way or (raw["target_provision_state"] and not raw["last_error"]):
                return False
            if raw["provision_state"] == ENROLL:
                raise CloudError(bmc_fault(raw), 400)
            raise CloudError(
                "it is in state %s instead of %s: %s. Correct the cause, and run the task again."
                % (raw["provision_state"], target, raw["last_error"] or "no cause reported by Ironic"),
                400,
            )

        self.wait(is_done, self._timeout)


def _state(step: Step) -> str:
    """Return the provision state before a step."""
    return str((step.before or {}).get("state", ENROLL))


def _needs_state(step: Step) -> bool:
    """Return whether a step changes the provision state."""
    return "state" in (step.desired or {}) and (
        step.action is Action.CREATE or any(f.name == "state" for f in step.changed_fields)
    )


def _secret_info(item: Object) -> Object:
    """Return the settings of the BMC with the password."""
    return {**item.get("bmc", {}), **({"redfish_password": item["password"]} if "password" in item else {})}


def _port_values(item: Object) -> Object:
    names = {
        "physical_network": "physical_network",
        "pxe_enabled": "pxe_enabled",
        "local_link": "local_link_connection",
    }
    return {key: item[name] for name, key in names.items() if name in item}


def _escaped(key: str) -> str:
    """Return a key as part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
