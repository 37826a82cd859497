# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the module that describe the desired Neutron objects. No I/O."""

from __future__ import annotations

import typing as t

from .families import ABSENT, ADDRESS_SCOPE, NETWORK, SECURITY_GROUP, SUBNET_POOL

_STR: dict[str, t.Any] = {"type": "str"}
_NAME: dict[str, t.Any] = {"type": "str", "required": True}
_BOOL: dict[str, t.Any] = {"type": "bool"}
_INT: dict[str, t.Any] = {"type": "int"}
_LIST: dict[str, t.Any] = {"type": "list", "elements": "str"}
PORT_CONFLICTS = [("addresses", "address_choices"), ("subnets", "address_choices")]


def _list_of(options: dict[str, t.Any], **more: t.Any) -> dict[str, t.Any]:
    return {"type": "list", "elements": "dict", "options": options, **more}


CONFIG_OPTIONS: dict[str, t.Any] = {
    "address_scopes": _list_of({"name": _NAME, "ip_version": {"type": "int", "choices": [4, 6]}, "shared": _BOOL}),
    "subnet_pools": _list_of({"name": _NAME, "prefixes": {**_LIST, "required": True}, "address_scope": _STR}),
    "networks": _list_of(
        {
            "name": _NAME,
            "vlan": _INT,
            "physical_network": _STR,
            "network_type": {"type": "str", "choices": ["vlan", "flat", "local", "geneve", "gre", "vxlan"]},
            "mtu": _INT,
            "dns_domain": _STR,
            "port_security": _BOOL,
            "external": _BOOL,
            "admin_state_up": _BOOL,
            "description": _STR,
        }
    ),
    "subnets": _list_of(
        {
            "name": _NAME,
            "network": _NAME,
            "cidr": _NAME,
            "subnet_pool": _STR,
            "gateway": _STR,
            "dhcp": _BOOL,
            "pools": _LIST,
            "dns_servers": _LIST,
            "host_routes": _list_of({"destination": _NAME, "nexthop": _NAME}),
        }
    ),
    "security_groups": _list_of(
        {
            "name": _NAME,
            "description": _STR,
            "rules": _list_of(
                {
                    "direction": {"type": "str", "choices": ["ingress", "egress"], "required": True},
                    "ethertype": {"type": "str", "choices": ["IPv4", "IPv6"], "default": "IPv4"},
                    "protocol": _STR,
                    "port": _INT,
                    "port_max": _INT,
                    "remote": _STR,
                    "remote_group": _STR,
                    "description": _STR,
                },
                mutually_exclusive=[("remote", "remote_group")],
                required_by={"port": "protocol", "port_max": "port"},
            ),
        }
    ),
    "ports": _list_of(
        {
            "name": _NAME,
            "network": _NAME,
            "mac": _STR,
            "addresses": _LIST,
            "address_choices": _LIST,
            "subnets": _LIST,
            "dns_name": _STR,
            "port_security": _BOOL,
            "security_groups": _LIST,
            "vnic_type": {
                "type": "str",
                "choices": ["normal", "direct", "direct-physical", "macvtap", "baremetal", "virtio-forwarder"],
            },
            "hardware_offload": _BOOL,
            "admin_state_up": _BOOL,
            "description": _STR,
        },
        mutually_exclusive=PORT_CONFLICTS,
    ),
    "routers": _list_of(
        {
            "name": _NAME,
            "external_network": _STR,
            "snat": _BOOL,
            "admin_state_up": _BOOL,
            "description": _STR,
            "interfaces": _list_of({"subnet": _NAME, "address": _STR}),
        },
        required_by={"snat": "external_network"},
    ),
    "shares": _list_of(
        {
            "kind": {
                "type": "str",
                "choices": [f.kind for f in (NETWORK, SECURITY_GROUP, ADDRESS_SCOPE, SUBNET_POOL)],
                "default": NETWORK.kind,
            },
            "name": _NAME,
            "project": _NAME,
            "state": {"type": "str", "choices": ["present", ABSENT], "default": "present"},
        }
    ),
}
