# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Canonical form of security group rules, both desired and actual. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Object

_IDENTITY = ("direction", "ethertype", "protocol", "port", "port_max", "remote", "remote_group")
_PROTOCOLS = {"1": "icmp", "6": "tcp", "17": "udp", "58": "ipv6-icmp", "icmpv6": "ipv6-icmp", "any": None}
_EVERYWHERE = ("0.0.0.0/0", "::/0")
_ALL_PORTS = (1, 65535)


def parse_rule(raw: Object, group_names: t.Mapping[str, str]) -> Object:
    """Return a rule of the API in the format of the module's option."""
    remote_group = raw["remote_group_id"]
    rule = {
        "direction": raw["direction"],
        "ethertype": raw["ethertype"],
        "protocol": raw["protocol"],
        "port": raw["port_range_min"],
        "port_max": raw["port_range_max"],
        "remote": raw["remote_ip_prefix"],
        "remote_group": group_names.get(remote_group, remote_group) if remote_group else None,
    }
    # The modules create no rules for address groups: the id makes such a rule differ from all desired ones.
    if raw.get("remote_address_group_id"):
        rule["remote"] = raw["remote_address_group_id"]
    return canonical_rule(rule)


def canonical_rule(rule: Object) -> Object:
    """Return a rule in the form that all equivalent rules share. Neutron stores most rules in this form."""
    found = {**rule, "ethertype": rule.get("ethertype") or "IPv4"}
    protocol = str(found.get("protocol") or "any").lower()
    found["protocol"] = _PROTOCOLS.get(protocol, protocol)
    if found["ethertype"] == "IPv6" and found["protocol"] == "icmp":
        found["protocol"] = "ipv6-icmp"
    if found.get("port_max") is None and found["protocol"] not in ("icmp", "ipv6-icmp"):
        found["port_max"] = found.get("port")
    if (found.get("port"), found.get("port_max")) == _ALL_PORTS:
        found["port"] = found["port_max"] = None
    if found.get("remote") in _EVERYWHERE:
        found["remote"] = None
    return {name: value for name, value in found.items() if value is not None}


def rule_key(rule: Object) -> tuple[t.Any, ...]:
    """Return the identity of a canonical rule, without its description."""
    return tuple(rule.get(name) for name in _IDENTITY)


def sorted_rules(rules: t.Iterable[Object]) -> list[Object]:
    """Return rules, which have no order, in a stable order for output."""
    return sorted(rules, key=lambda rule: [str(part) for part in rule_key(rule)])
