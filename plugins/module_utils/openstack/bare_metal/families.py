# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Families of bare-metal nodes and their ports, and the desired objects of a task. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Family, Field, Mode, Object, UserError

SERVICE = "baremetal"  # type of the service
OWNER_KEY = "openipu.pod"  # key in `extra` of a node: POD that owns it
DRIVER = "redfish"

NODE = Family(
    "node",
    (
        Field("driver"),
        Field("resource_class"),
        Field("description"),
        Field("disable_power_off"),
        Field("automated_clean"),
        Field("interfaces"),
        Field("properties"),
        Field("traits", Mode.SET),
        Field("bmc"),
        Field("password", Mode.WRITE_ONLY),
        Field("password_written"),  # False for a node whose password is written again
        Field("state"),
    ),
    key="name",
)
PORT = Family(
    "port",
    (
        Field("node", immutable=True),
        Field("physical_network"),
        Field("pxe_enabled"),
        Field("local_link"),
    ),
    key="mac",
)

FAMILIES = (NODE, PORT)  # in the order of their dependencies
WHOLE = ("driver", "resource_class", "description", "disable_power_off", "automated_clean")  # names as in Ironic
INTERFACES = ("boot", "console", "deploy", "inspect", "management", "network", "power", "vendor")

_STR: dict[str, t.Any] = {"type": "str"}
_NAME: dict[str, t.Any] = {"type": "str", "required": True}
_BOOL: dict[str, t.Any] = {"type": "bool"}

OPTIONS: dict[str, t.Any] = {
    "pod": _NAME,
    "nodes": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": _NAME,
            "driver": _STR,
            "resource_class": _STR,
            "description": _STR,
            "disable_power_off": _BOOL,
            "automated_clean": _BOOL,
            "interfaces": {"type": "dict", "options": dict.fromkeys(INTERFACES, _STR)},
            "properties": {"type": "dict"},
            "traits": {"type": "list", "elements": "str"},
            "bmc": {
                "type": "dict",
                "options": {
                    "address": _STR,
                    "username": _STR,
                    "password": {"type": "str", "no_log": True},
                    "system_id": _STR,
                    "ca_path": _STR,
                    "validate_certs": _BOOL,
                },
            },
            "ports": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "mac": _NAME,
                    "physical_network": _STR,
                    "pxe_enabled": _BOOL,
                    "local_link": {
                        "type": "dict",
                        "options": {"switch_id": _NAME, "port_id": _NAME, "switch_info": _STR},
                    },
                },
            },
            "state": {"type": "str", "choices": ["manageable", "available"]},
        },
    },
}


def desired(params: Object) -> dict[str, list[Object]]:
    """Return the desired objects of the options by kind. Raises UserError."""
    objects: dict[str, list[Object]] = {NODE.kind: [], PORT.kind: []}
    for item in params["nodes"] or ():
        node = _given(item)
        ports = node.pop("ports", ())
        bmc = node.pop("bmc", {})
        password = bmc.pop("password", None)
        if password:
            node.update(password=password, password_written=True)
        if bmc:
            node["bmc"] = _driver_info(bmc, node["name"])
        if "interfaces" in node:
            node["interfaces"] = _given(node["interfaces"])
        objects[NODE.kind].append(node)
        objects[PORT.kind] += [_port(port, node["name"]) for port in ports]
    return objects


def _port(item: Object, node: str) -> Object:
    port = {**_given(item), "mac": item["mac"].lower(), "node": node}
    if "local_link" in port:
        port["local_link"] = _given(port["local_link"])
    return port


def _driver_info(bmc: Object, node: str) -> Object:
    """Return the settings of a BMC with their names in Ironic."""
    names = {"address": "redfish_address", "username": "redfish_username", "system_id": "redfish_system_id"}
    info = {key: bmc[name] for name, key in names.items() if name in bmc}
    if "redfish_address" in info and "://" not in info["redfish_address"]:
        info["redfish_address"] = "https://" + info["redfish_address"]
    if not bmc.get("validate_certs", True):
        if "ca_path" in bmc:
            raise UserError("Cannot use ca_path for node '%s': validate_certs is false. Omit one of them." % node)
        info["redfish_verify_ca"] = False
    else:
        info["redfish_verify_ca"] = bmc.get("ca_path", True)
    return info


def _given(item: Object) -> Object:
    return {name: _given(value) if name == "bmc" else value for name, value in item.items() if value is not None}
