# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task asks Neutron to hold, as objects of the families, and which port is whose. Pure."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ..reconcile import Object, SentenceError
from .reading import Seen, share_id
from .resources import (
    ABSENT,
    ANY,
    FAMILIES,
    INTERFACE,
    NONE,
    PORT,
    ROUTER,
    SECURITY_GROUP,
    SHARE,
    SUBNET,
    SUBNET_POOL,
)
from .rules import canonical_rule, sorted_rules

Objects = dict[str, list[Object]]  # by kind; a kind that nothing was said of is not in it

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)


def wanted(config: Object, owner: str) -> Objects:
    """The objects that the option ``config`` asks for. Raises SentenceError for what nothing could be."""
    objects: Objects = {}
    for family in FAMILIES:
        items = config.get(family.plural)
        if items is None:
            continue
        made = [_MAKERS.get(family.kind, _plain)(_asked(item)) for item in items if not _going(item)]
        if any(f.name == "owner" for f in family.fields):
            made = [{**item, "owner": owner} for item in made]
        objects[family.kind] = made
    routers = [item for item in config.get(ROUTER.plural) or () if item.get("interfaces") is not None]
    if routers:
        objects[INTERFACE.kind] = [_interface(router, item) for router in routers for item in router["interfaces"]]
    return objects


def going(config: Object) -> list[str]:
    """The keys of the shares that the option ``config`` asks to take back."""
    return [_share(item)["id"] for item in config.get(SHARE.plural) or () if _going(item)]


def _going(item: Object) -> bool:
    return bool(item.get("state") == ABSENT)


def _asked(item: Object) -> Object:
    return {name: value for name, value in item.items() if value is not None}


def _plain(item: Object) -> Object:
    return item


def _network_of(text: str, what: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise SentenceError(
            "%s is '%s', which is no network such as 10.1.5.0/24: correct it." % (what, text)
        ) from error


def _address_of(text: str, what: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise SentenceError("%s is '%s', which is no address such as 10.1.5.1: correct it." % (what, text)) from error


def _subnet(item: Object) -> Object:
    name = item["name"]
    item["cidr"] = _network_of(item["cidr"], "The cidr of subnet '%s'" % name)
    if item.get("gateway", NONE) != NONE:
        item["gateway"] = _address_of(item["gateway"], "The gateway of subnet '%s'" % name)
    if "pools" in item:
        item["pools"] = [_pool(text, name) for text in item["pools"]]
    item["dns_servers"] = [
        _address_of(text, "A DNS server of subnet '%s'" % name) for text in item.get("dns_servers") or ()
    ]
    if not item["dns_servers"]:
        del item["dns_servers"]
    return item


def _pool(text: str, subnet: str) -> str:
    ends = text.split("-")
    if len(ends) != 2:
        raise SentenceError(
            "A pool of subnet '%s' is '%s', which is not of the form 10.1.5.150-10.1.5.250: correct it."
            % (subnet, text)
        )
    return "-".join(_address_of(end.strip(), "An end of a pool of subnet '%s'" % subnet) for end in ends)


def _subnet_pool(item: Object) -> Object:
    what = "A prefix of subnet pool '%s'" % item["name"]
    item["prefixes"] = [_network_of(text, what) for text in item["prefixes"]]
    return item


def _group(item: Object) -> Object:
    if "rules" in item:
        what = "The remote of a rule of security group '%s'" % item["name"]
        rules = []
        for rule in item["rules"]:
            rule = canonical_rule(_asked(rule))
            if "remote" in rule:
                rule["remote"] = _network_of(rule["remote"], what)
            rules.append(rule)
        item["rules"] = sorted_rules(rules)
    return item


def _port(item: Object) -> Object:
    name = item["name"]
    if "mac" in item:
        item["mac"] = item["mac"].lower().replace("-", ":")
        if not _MAC.fullmatch(item["mac"]):
            raise SentenceError(
                "The MAC of port '%s' is '%s', which is not of the form 0c:42:a1:00:05:01: correct it."
                % (name, item["mac"])
            )
    if "addresses" in item:
        item["addresses"] = [_address_of(text, "An address of port '%s'" % name) for text in item["addresses"]]
    if item.get("dns_name") and not all(_LABEL.fullmatch(label) for label in item["dns_name"].rstrip(".").split(".")):
        raise SentenceError(
            "The DNS name of port '%s' is '%s', and a name has letters, digits and '-' only: correct it."
            % (name, item["dns_name"])
        )
    if item.get("port_security") is False:
        if item.get("security_groups"):
            raise SentenceError(
                "Port '%s' is to have security groups and no port security: give one of them up." % name
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
        interface["address"] = _address_of(address, "The address of router '%s'" % router["name"])
    return interface


def _share(item: Object) -> Object:
    parts = {name: item[name] for name in ("kind", "name", "project")}
    return {**parts, "id": share_id(**parts)}


_MAKERS: dict[str, t.Callable[[Object], Object]] = {
    SUBNET.kind: _subnet,
    SUBNET_POOL.kind: _subnet_pool,
    SECURITY_GROUP.kind: _group,
    PORT.kind: _port,
    ROUTER.kind: _router,
    SHARE.kind: _share,
}


def match_ports(asked: list[Object], seen: Seen, owner: str) -> None:
    """Find the port behind every one that is asked for, and name it so; the others keep nobody's name.

    A MAC tells which machine it is: a port of ours that has it is moved, with its new name and address, wherever
    it was. Only then does the name count, of a machine that got another MAC.
    """
    there = sorted(seen.objects[PORT.kind], key=lambda port: port["owner"] != owner)  # ours first
    ours = [port for port in there if port["owner"] == owner]
    taken: dict[str, Object] = {}  # uuid -> the port that is asked for
    macs: dict[str, list[Object]] = {}
    for port in ours:
        macs.setdefault(port["mac"], []).append(port)
    names: dict[tuple[str, str], list[Object]] = {}
    for port in there:
        names.setdefault((port["network"], port["name"]), []).append(port)
    _match(asked, taken, lambda item: [p for p in macs.get(item.get("mac", ""), ()) if p["network"] == item["network"]])
    _match(asked, taken, lambda item: names.get((item["network"], item["name"]), []))
    _match(asked, taken, lambda item: macs.get(item.get("mac", ""), []))
    keys = {item["name"] for item in asked}
    for port in there:
        item = taken.get(port["uuid"])
        if item is None:
            if not port["name"] or port["name"] in keys:
                port["name"] = ("%s (%s)" % (port["name"], port["uuid"])).strip()
            keys.add(port["name"])
            continue
        if "subnets" in item and set(item.get("addresses", ())) <= set(port["addresses"]):
            item["addresses"] = port["addresses"]  # those of the subnets were chosen when it was made
        if port["name"] != item["name"]:
            port["former_name"], port["name"] = port["name"] or port["uuid"], item["name"]
            item["former_name"] = ""


def _match(asked: list[Object], taken: dict[str, Object], candidates: t.Callable[[Object], list[Object]]) -> None:
    served = {id(item) for item in taken.values()}
    for item in asked:
        if id(item) in served:
            continue
        port = next((port for port in candidates(item) if port["uuid"] not in taken), None)
        if port:
            taken[port["uuid"]] = item
