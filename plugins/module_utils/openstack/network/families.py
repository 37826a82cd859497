# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Families of the Neutron objects of a POD, and the desired objects of a task. No I/O.

Objects refer to each other by name, so a plan needs no ids of objects that do not exist yet. Actual objects
have their id under ``uuid``. Actual ports have their user under ``bound``.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ...reconcile import Family, Field, Mode, Object, UserError
from .security_rules import canonical_rule, rule_key, sorted_rules

Objects = t.Mapping[str, list[Object]]  # by kind; a kind without an entry is not managed

ABSENT = "absent"  # state of a share to remove
ANY = "any"  # requests any free address
NONE = "none"  # requests that there is no such object, unlike an omitted option
SWITCHDEV = "switchdev"  # mode of a card that forwards packets itself, as Open vSwitch configured it
ALL_PROJECTS = "*"  # target of a share with all projects

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)


def merged_prefixes(prefixes: t.Iterable[str] | None) -> frozenset[t.Any]:
    """Return prefixes with neighbors merged, as Neutron stores them."""
    networks = [ipaddress.ip_network(prefix) for prefix in prefixes or ()]
    v4 = [network for network in networks if isinstance(network, ipaddress.IPv4Network)]
    v6 = [network for network in networks if isinstance(network, ipaddress.IPv6Network)]
    return frozenset([*ipaddress.collapse_addresses(v4), *ipaddress.collapse_addresses(v6)])


def overlap(one: str, other: str) -> bool:
    """Return whether two prefixes have common addresses."""
    a, b = ipaddress.ip_network(one), ipaddress.ip_network(other)
    return a.version == b.version and a.overlaps(b)


def share_id(kind: str, name: str, project: str) -> str:
    """Return the key of a share in results."""
    return "%s/%s/%s" % (kind, name, project)


def _rule_keys(rules: t.Any) -> set[tuple[t.Any, ...]]:
    return {rule_key(rule) for rule in rules or ()}


def _routes(routes: t.Any) -> set[tuple[str, str]]:
    return {(route["destination"], route["nexthop"]) for route in routes or ()}


ADDRESS_SCOPE = Family(
    "address_scope", (Field("ip_version", Mode.SERVER_DEFAULTED, immutable=True), Field("shared")), key="name"
)
SUBNET_POOL = Family(
    "subnet_pool", (Field("prefixes", view=merged_prefixes), Field("address_scope"), Field("owner")), key="name"
)
NETWORK = Family(
    "network",
    (
        Field("former_name"),  # of a network that was renamed in Neutron
        Field("vlan", immutable=True),
        Field("physical_network", immutable=True),
        Field("network_type", immutable=True),
        Field("mtu"),
        Field("dns_domain"),
        Field("port_security"),
        Field("external"),
        Field("admin_state_up"),
        Field("description"),
        Field("owner"),
    ),
    key="name",
)
SUBNET = Family(
    "subnet",
    (
        Field("former_name"),
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
    "security_group",
    (Field("description"), Field("rules", view=_rule_keys, member=rule_key), Field("owner")),
    key="name",
)
PORT = Family(
    "port",
    (
        Field("former_name"),  # of a port that moves to another machine
        Field("network", immutable=True),
        Field("mac"),
        Field("addresses", Mode.SET),
        Field("subnets", Mode.WRITE_ONLY),  # a new port gets an address from each
        Field("dns_name"),
        Field("port_security"),
        Field("security_groups", Mode.SET),
        Field("vnic_type"),
        Field("hardware_offload", immutable=True),
        Field("admin_state_up"),
        Field("description"),
        Field("owner"),
    ),
    key="name",
)
ROUTER = Family(
    "router",
    (Field("external_network"), Field("snat"), Field("admin_state_up"), Field("description"), Field("owner")),
    key="name",
)
INTERFACE = Family("router_interface", (Field("address", immutable=True),))
SHARE = Family("share", ())

# In the order of their dependencies.
FAMILIES = (ADDRESS_SCOPE, SUBNET_POOL, NETWORK, SUBNET, SECURITY_GROUP, PORT, ROUTER, INTERFACE, SHARE)

# Collections of the API.
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
# Names of single objects in the API.
RESOURCES = {
    ADDRESS_SCOPE.kind: "address_scope",
    SUBNET_POOL.kind: "subnetpool",
    NETWORK.kind: "network",
    SUBNET.kind: "subnet",
    SECURITY_GROUP.kind: "security_group",
    PORT.kind: "port",
    ROUTER.kind: "router",
    SHARE.kind: "rbac_policy",
}
COLLECTIONS = {kind: "rbac_policies" if kind == SHARE.kind else name + "s" for kind, name in RESOURCES.items()}


def desired(config: Object, owner: str) -> Objects:
    """Return the desired objects of the option ``config``. Raises UserError for malformed values."""
    objects: dict[str, list[Object]] = {}
    for family in FAMILIES:
        items = config.get(family.plural)
        if items is None:
            continue
        parse = _PARSERS.get(family.kind, _plain)
        parsed = [parse(_given(item)) for item in items if not _is_absent(item)]
        names = {f.name for f in family.fields}
        if "owner" in names:
            parsed = [{**item, "owner": owner} for item in parsed]
        if "admin_state_up" in names:  # an object that is down looks complete but passes no packets
            parsed = [{"admin_state_up": True, **item} for item in parsed]
        objects[family.kind] = parsed
    routers = [item for item in config.get(ROUTER.plural) or () if item.get("interfaces") is not None]
    if routers:
        objects[INTERFACE.kind] = [_interface(router, item) for router in routers for item in router["interfaces"]]
    return objects


def absent_shares(config: Object) -> list[str]:
    """Return the keys of the shares that the option ``config`` removes."""
    return [_share(item)["id"] for item in config.get(SHARE.plural) or () if _is_absent(item)]


def _is_absent(item: Object) -> bool:
    return bool(item.get("state") == ABSENT)


def _given(item: Object) -> Object:
    return {name: value for name, value in item.items() if value is not None}


def _plain(item: Object) -> Object:
    return item


def _prefix(text: str, subject: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise UserError(
            "Cannot read %s: '%s' is not a network such as 10.1.5.0/24. Correct it." % (subject, text)
        ) from error


def _address(text: str, subject: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise UserError(
            "Cannot read %s: '%s' is not an address such as 10.1.5.1. Correct it." % (subject, text)
        ) from error


def _subnet(item: Object) -> Object:
    name = item["name"]
    item["cidr"] = _prefix(item["cidr"], "the cidr of subnet '%s'" % name)
    if item.get("gateway", NONE) != NONE:
        item["gateway"] = _address(item["gateway"], "the gateway of subnet '%s'" % name)
    if "pools" in item:
        item["pools"] = [_pool(text, name) for text in item["pools"]]
    if "dns_servers" in item:
        item["dns_servers"] = [_address(text, "a DNS server of subnet '%s'" % name) for text in item["dns_servers"]]
    return item


def _pool(text: str, subnet: str) -> str:
    ends = text.split("-")
    if len(ends) != 2:
        raise UserError(
            "Cannot read a pool of subnet '%s': '%s' is not of the form 10.1.5.150-10.1.5.250. Correct it."
            % (subnet, text)
        )
    return "-".join(_address(end.strip(), "an end of a pool of subnet '%s'" % subnet) for end in ends)


def _subnet_pool(item: Object) -> Object:
    subject = "a prefix of subnet pool '%s'" % item["name"]
    item["prefixes"] = [_prefix(text, subject) for text in item["prefixes"]]
    return item


def _group(item: Object) -> Object:
    if "rules" in item:
        subject = "the remote of a rule of security group '%s'" % item["name"]
        rules = []
        for rule in item["rules"]:
            rule = canonical_rule(_given(rule))
            if "remote" in rule:
                rule["remote"] = _prefix(rule["remote"], subject)
            rules.append(rule)
        item["rules"] = sorted_rules(rules)
    return item


def _port(item: Object) -> Object:
    name = item["name"]
    if "mac" in item:
        item["mac"] = item["mac"].lower().replace("-", ":")
        if not _MAC.fullmatch(item["mac"]):
            raise UserError(
                "Cannot read the MAC of port '%s': '%s' is not of the form 0c:42:a1:00:05:01. Correct it."
                % (name, item["mac"])
            )
    for field in ("addresses", "address_choices"):
        if field in item:
            item[field] = [_address(text, "an address of port '%s'" % name) for text in item[field]]
    if item.get("dns_name") and not all(_LABEL.fullmatch(label) for label in item["dns_name"].rstrip(".").split(".")):
        raise UserError(
            "Cannot read the DNS name of port '%s': '%s' has characters other than letters, digits and '-'. Correct it."
            % (name, item["dns_name"])
        )
    if item.get("port_security") is False:
        if item.get("security_groups"):
            raise UserError(
                "Cannot configure port '%s': it has security groups, but no port security. Omit one of them." % name
            )
        item["security_groups"] = []
    return item


def _router(item: Object) -> Object:
    return {name: value for name, value in item.items() if name != "interfaces"}


def _interface(router: Object, item: Object) -> Object:
    interface = {
        "id": "%s/%s" % (router["name"], item["subnet"]),
        "router": router["name"],
        "subnet": item["subnet"],
    }
    address = item.get("address")
    if address == ANY:
        return {**interface, "any_address": True}
    if address:
        interface["address"] = _address(address, "the address of router '%s'" % router["name"])
    return interface


def _share(item: Object) -> Object:
    parts = {name: item[name] for name in ("kind", "name", "project")}
    return {**parts, "id": share_id(**parts)}


_PARSERS: dict[str, t.Callable[[Object], Object]] = {
    SUBNET.kind: _subnet,
    SUBNET_POOL.kind: _subnet_pool,
    SECURITY_GROUP.kind: _group,
    PORT.kind: _port,
    ROUTER.kind: _router,
    SHARE.kind: _share,
}
