# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Neutron holds for a POD, as families of the reconcile engine, and the options that ask for it. Pure.

Objects name each other by name, so that a plan needs nothing that is yet to be made. An object that was read
has its id under ``uuid`` besides, and a port also ``bound``, what it is in use by.
"""

from __future__ import annotations

import ipaddress
import typing as t

from ..reconcile import Family, Field, Mode, Object

ABSENT = "absent"  # the state of a share that is to go
NONE = "none"  # asks for there to be none, where not to ask at all leaves what is there
SWITCHDEV = "switchdev"  # the mode of a card that forwards by itself what Open vSwitch once told it
ANY = "any"  # whichever address is free

EVERYBODY = "*"  # whom something is shared with

TAG = "openipu.pod="  # and the owner: what a task made and may remove


def collapsed(prefixes: t.Iterable[str] | None) -> frozenset[t.Any]:
    """Prefixes, whichever way they are cut: Neutron joins neighbours."""
    networks = [ipaddress.ip_network(prefix) for prefix in prefixes or ()]
    v4 = [network for network in networks if isinstance(network, ipaddress.IPv4Network)]
    v6 = [network for network in networks if isinstance(network, ipaddress.IPv6Network)]
    return frozenset([*ipaddress.collapse_addresses(v4), *ipaddress.collapse_addresses(v6)])


def overlap(one: str, other: str) -> bool:
    """Whether two prefixes have addresses in common."""
    a, b = ipaddress.ip_network(one), ipaddress.ip_network(other)
    return a.version == b.version and a.overlaps(b)


def rule_key(rule: Object) -> tuple[t.Any, ...]:
    """What makes a rule another one; its description does not."""
    return tuple(rule.get(name) for name in RULE_PARTS)


def _rule_keys(rules: t.Any) -> set[tuple[t.Any, ...]]:
    return {rule_key(rule) for rule in rules or ()}


def _routes(routes: t.Any) -> set[tuple[str, str]]:
    return {(route["destination"], route["nexthop"]) for route in routes or ()}


RULE_PARTS = ("direction", "ethertype", "protocol", "port", "port_max", "remote", "remote_group")

ADDRESS_SCOPE = Family(
    "address_scope", (Field("ip_version", Mode.SERVER_DEFAULTED, immutable=True), Field("shared")), key="name"
)
SUBNET_POOL = Family(
    "subnet_pool", (Field("prefixes", view=collapsed), Field("address_scope"), Field("owner")), key="name"
)
NETWORK = Family(
    "network",
    (
        Field("vlan", immutable=True),
        Field("physical_network", immutable=True),
        Field("network_type", immutable=True),
        Field("mtu"),
        Field("dns_domain"),
        Field("port_security"),
        Field("external"),
        Field("description"),
        Field("owner"),
    ),
    key="name",
)
SUBNET = Family(
    "subnet",
    (
        Field("network", immutable=True),
        Field("cidr", immutable=True),
        Field("subnet_pool", immutable=True),
        Field("gateway"),
        Field("dhcp"),
        Field("pools", Mode.SET),
        Field("dns_servers"),
        Field("host_routes", view=_routes),
        Field("owner"),
    ),
    key="name",
)
SECURITY_GROUP = Family(
    "security_group", (Field("description"), Field("rules", view=_rule_keys), Field("owner")), key="name"
)
PORT = Family(
    "port",
    (
        Field("former_name"),  # of a port that is another machine's from now on
        Field("network", immutable=True),
        Field("mac"),
        Field("addresses", Mode.SET),
        Field("subnets", Mode.WRITE_ONLY),  # from which a new port gets an address each
        Field("dns_name"),
        Field("port_security"),
        Field("security_groups", Mode.SET),
        Field("vnic_type"),
        Field("hardware_offload", immutable=True),
        Field("description"),
        Field("owner"),
    ),
    key="name",
)
ROUTER = Family("router", (Field("external_network"), Field("snat"), Field("description"), Field("owner")), key="name")
INTERFACE = Family("router_interface", (Field("address", immutable=True),))
SHARE = Family("share", ())

# In the order in which they depend on each other.
FAMILIES = (ADDRESS_SCOPE, SUBNET_POOL, NETWORK, SUBNET, SECURITY_GROUP, PORT, ROUTER, INTERFACE, SHARE)

# Where the API has them.
PATHS = {
    ADDRESS_SCOPE.kind: "/address-scopes",
    SUBNET_POOL.kind: "/subnetpools",
    NETWORK.kind: "/networks",
    SUBNET.kind: "/subnets",
    SECURITY_GROUP.kind: "/security-groups",
    PORT.kind: "/ports",
    ROUTER.kind: "/routers",
    SHARE.kind: "/rbac-policies",
}
# What the API calls one of them.
CALLED = {
    ADDRESS_SCOPE.kind: "address_scope",
    SUBNET_POOL.kind: "subnetpool",
    NETWORK.kind: "network",
    SUBNET.kind: "subnet",
    SECURITY_GROUP.kind: "security_group",
    PORT.kind: "port",
    ROUTER.kind: "router",
    SHARE.kind: "rbac_policy",
}
COLLECTIONS = {kind: "rbac_policies" if kind == SHARE.kind else name + "s" for kind, name in CALLED.items()}

_STR: dict[str, t.Any] = {"type": "str"}
_NAME: dict[str, t.Any] = {"type": "str", "required": True}
_BOOL: dict[str, t.Any] = {"type": "bool"}
_INT: dict[str, t.Any] = {"type": "int"}
_LIST: dict[str, t.Any] = {"type": "list", "elements": "str"}


def _each(options: dict[str, t.Any], **more: t.Any) -> dict[str, t.Any]:
    return {"type": "list", "elements": "dict", "options": options, **more}


CONFIG_OPTIONS: dict[str, t.Any] = {
    "address_scopes": _each({"name": _NAME, "ip_version": {"type": "int", "choices": [4, 6]}, "shared": _BOOL}),
    "subnet_pools": _each({"name": _NAME, "prefixes": {**_LIST, "required": True}, "address_scope": _STR}),
    "networks": _each(
        {
            "name": _NAME,
            "vlan": _INT,
            "physical_network": _STR,
            "network_type": {"type": "str", "choices": ["vlan", "flat", "local", "geneve", "gre", "vxlan"]},
            "mtu": _INT,
            "dns_domain": _STR,
            "port_security": _BOOL,
            "external": _BOOL,
            "description": _STR,
        }
    ),
    "subnets": _each(
        {
            "name": _NAME,
            "network": _NAME,
            "cidr": _NAME,
            "subnet_pool": _STR,
            "gateway": _STR,
            "dhcp": _BOOL,
            "pools": _LIST,
            "dns_servers": _LIST,
            "host_routes": _each({"destination": _NAME, "nexthop": _NAME}),
        }
    ),
    "security_groups": _each(
        {
            "name": _NAME,
            "description": _STR,
            "rules": _each(
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
    "ports": _each(
        {
            "name": _NAME,
            "network": _NAME,
            "mac": _STR,
            "addresses": _LIST,
            "subnets": _LIST,
            "dns_name": _STR,
            "port_security": _BOOL,
            "security_groups": _LIST,
            "vnic_type": {
                "type": "str",
                "choices": ["normal", "direct", "direct-physical", "macvtap", "baremetal", "virtio-forwarder"],
            },
            "hardware_offload": _BOOL,
            "description": _STR,
        }
    ),
    "routers": _each(
        {
            "name": _NAME,
            "external_network": _STR,
            "snat": _BOOL,
            "description": _STR,
            "interfaces": _each({"subnet": _NAME, "address": _STR}),
        },
        required_by={"snat": "external_network"},
    ),
    "shares": _each(
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
