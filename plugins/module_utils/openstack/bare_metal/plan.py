# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan of bare-metal nodes and their ports: ownership, and checks before removals. No I/O."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ...reconcile import Action, Object, Step, UserError, plan
from ..common.steps import list_objects
from .families import DRIVER, NODE, OWNER_KEY, PORT, WHOLE

ENROLL, VERIFYING, MANAGEABLE, AVAILABLE = "enroll", "verifying", "manageable", "available"
# States that the task changes to the desired one. Nodes in other states are in use, or Ironic is changing them.
IDLE = (ENROLL, VERIFYING, MANAGEABLE, AVAILABLE, "clean failed", "inspect failed", "adopt failed")
# States in which Ironic accepts changes of ports. In others, it requires maintenance.
PORTS_OPEN = (ENROLL, MANAGEABLE, "inspecting", "inspect wait")


@dataclass
class State:
    """Actual objects of a task, and the names of all nodes by id."""

    nodes: list[Object] = field(default_factory=list)
    ports: list[Object] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, Object]:
        """Nodes by name."""
        return {node["name"]: node for node in self.nodes}


def parse_node(raw: Object, desired: Object) -> Object:
    """Return a node of Ironic. It has only those properties, interfaces and BMC settings that the desired one sets."""
    info, properties = {"redfish_verify_ca": True, **raw["driver_info"]}, raw["properties"]
    interfaces = {name: raw["%s_interface" % name] for name in desired.get("interfaces", ())}
    node = {
        "name": raw["name"] or raw["uuid"],
        "uuid": raw["uuid"],
        "owner": raw["extra"].get(OWNER_KEY),
        "provision_state": raw["provision_state"],
        "power_state": raw["power_state"],
        "maintenance": raw["maintenance"],
        "in_use": bool(raw["instance_uuid"]) or raw["provision_state"] not in IDLE,
        **{name: raw[name] for name in WHOLE if name in raw},
        "interfaces": interfaces,
        "properties": {key: properties[key] for key in desired.get("properties", ()) if key in properties},
        "traits": raw["traits"],
        "bmc": {key: info[key] for key in desired.get("bmc", ()) if key in info},
    }
    node["description"] = raw["description"] or ""
    if raw["provision_state"] in IDLE:
        node["state"] = raw["provision_state"]
    return node


def parse_port(raw: Object, names: dict[str, str], desired: Object) -> Object:
    """Return a port of Ironic. ``names`` are those of the nodes by id."""
    link: Object = raw["local_link_connection"] or {}
    compared: Object = desired.get("local_link") or link
    return {
        "mac": raw["address"],
        "uuid": raw["uuid"],
        "node": names.get(raw["node_uuid"], raw["node_uuid"]),
        "physical_network": raw["physical_network"],
        "pxe_enabled": raw["pxe_enabled"],
        "group": raw["portgroup_uuid"],  # None without a port group
        "local_link": {key: link[key] for key in compared if key in link},
    }


def plan_nodes(pod: str, desired: list[Object], state: State, prune: bool, write_passwords: bool) -> list[Step]:
    """Return the steps of nodes. Raises UserError for nodes of other owners, and before it removes a node in use."""
    _check_owners(pod, [item["name"] for item in desired], state)
    actual = [{**node, "password_written": not write_passwords} for node in state.nodes]
    created = {item["name"] for item in desired} - state.by_name.keys()
    items = [{"driver": DRIVER, **item} if item["name"] in created else item for item in desired]
    steps = plan(NODE, items, actual, prune=(lambda node: node["owner"] == pod) if prune else None)
    _check_removals(steps)
    return steps


def plan_removal(pod: str, names: list[str] | None, state: State) -> list[Step]:
    """Return the removal of the named nodes, or of all nodes of the POD. Raises UserError."""
    if names is None:
        names = [str(node["name"]) for node in state.nodes if node["owner"] == pod]
    _check_owners(pod, names, state)
    steps = plan(NODE, [], state.nodes, absent=names)
    _check_removals(steps)
    return steps


def plan_ports(pod: str, desired: list[Object], managed: t.Collection[str], state: State) -> list[Step]:
    """Return the steps of the ports of the nodes ``managed``, whose other ports are removed.

    Members of port groups stay, because the site creates the port groups of bonds, see ``kept_members``. A port moves
    from another node of the POD, for instance after an exchange of RNICs. Raises UserError.
    """
    nodes = state.by_name
    for item in desired:
        other = next((port["node"] for port in state.ports if port["mac"] == item["mac"]), item["node"])
        if other != item["node"] and (other not in nodes or nodes[other]["owner"] != pod):
            raise UserError(
                "Cannot register MAC %s for node '%s': node '%s' has it, which does not belong to '%s'. Correct the "
                "MAC, or remove it there." % (item["mac"], item["node"], other, pod)
            )

    def is_removed(port: Object) -> bool:
        return port["node"] in managed and port["group"] is None

    return plan(PORT, desired, state.ports, prune=is_removed, recreate=True)


def kept_members(desired: list[Object], managed: t.Collection[str], state: State) -> list[Object]:
    """Return MAC, node and port group of the undesired members of port groups of the nodes ``managed``."""
    macs = {item["mac"] for item in desired}
    kept = [port for port in state.ports if port["node"] in managed and port["group"] and port["mac"] not in macs]
    return [
        {name: port[name] for name in ("mac", "node", "group")} for port in sorted(kept, key=lambda port: port["mac"])
    ]


def member_warnings(desired: list[Object], managed: t.Collection[str], state: State) -> list[str]:
    """Return warnings for port groups without a desired member, and for members that move to another node.

    A group with a desired member is a bond with the port that the site added. The group of an exchanged RNIC has none.
    """
    nodes = {item["mac"]: item["node"] for item in desired}
    live = {port["group"] for port in state.ports if nodes.get(port["mac"]) == port["node"]}
    warnings = [
        "Port '%(mac)s' of node '%(node)s' stays, because it is in port group %(group)s. No port of this group is "
        "desired. After an exchange of the RNIC, remove it: openstack baremetal port delete %(uuid)s. Then add the new "
        "port: openstack baremetal port set PORT --pxe-disabled --port-group %(group)s." % port
        for port in state.ports
        if port["mac"] not in nodes and port["node"] in managed and port["group"] and port["group"] not in live
    ]
    warnings += [
        "Port '%s' moves from node '%s' to node '%s', and leaves port group %s. If node '%s' has a port group, add the "
        "port: openstack baremetal port set PORT --pxe-disabled --port-group GROUP."
        % (port["mac"], port["node"], nodes[port["mac"]], port["group"], nodes[port["mac"]])
        for port in state.ports
        if port["group"] and nodes.get(port["mac"], port["node"]) != port["node"]
    ]
    return warnings


def _check_owners(pod: str, names: t.Iterable[str], state: State) -> None:
    nodes = state.by_name
    for name in names:
        owner = nodes[name]["owner"] if name in nodes else pod
        if owner != pod:
            whose = "it belongs to '%s'" % owner if owner else "no task of this collection created it"
            raise UserError(
                "Cannot manage node '%s': %s. Choose another name, or assign it to this POD: openstack baremetal node "
                "set %s --extra %s=%s" % (name, whose, name, OWNER_KEY, pod)
            )


def _check_removals(steps: list[Step]) -> None:
    used = [step.key for step in steps if step.action is Action.DELETE and (step.before or {})["in_use"]]
    if used:
        raise UserError(
            "Cannot remove %s: it has an instance, or Ironic is changing it. Delete the instance, or wait. No node was "
            "removed." % list_objects("node", used)
        )


# Parts of an error of Ironic, and what is wrong with the settings of a BMC.
_BMC_FAULTS = (
    ("code 401", "the BMC rejects user name or password. Correct username and password in bmc"),
    ("certificate verify failed", "its certificate is not trusted. Set ca_path in bmc to its CA on the conductors"),
    ("Unable to connect", "it does not respond. Check its power and network, and address in bmc"),
    ("code 404", "it has no such system. Correct system_id in bmc"),
)


def bmc_fault(node: Object) -> str:
    """Return the reason why Ironic could not verify the BMC of a node, and the remedy."""
    error = " ".join((node["last_error"] or "no cause reported by Ironic").split()).rstrip(".")
    address = node["driver_info"].get("redfish_address", "an unknown address")
    fault = next((text for part, text in _BMC_FAULTS if part.lower() in error.lower()), None)
    return "Ironic cannot use its BMC at %s: %s. Then run the task again." % (
        address,
        fault or "%s. Correct the settings in bmc" % error,
    )
