# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of a switch as objects of the reconcile engine, and the commands that change it. No I/O."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ..reconcile import Action, Family, Field, Mode, Object, Step, UserError
from .config_lines import (
    ChannelGroup,
    ConfigOption,
    Ecn,
    Flag,
    Lines,
    NoDrop,
    SwitchportMode,
    TrunkVlans,
    Word,
    negated,
)
from .running_config import Node, device, numbers, parse

_INTERFACE_NAME = re.compile(r"(Ethernet\d+(/\d+){0,2}|Management\d+(/\d+)?|Port-Channel\d+|Vlan\d+)")
# Interfaces that exist as soon as they are configured.
_VIRTUAL = ("Port-Channel", "Vlan")
# Platforms with separate unicast queues.
_UNICAST_QUEUES = re.compile(r"DCS-7(05|06|26)0")
_FIRST_VLAN: Object = {"id": 1, "name": "default"}  # always exists; EOS prints it only if it was renamed
_OTHER = "other"  # lines of an interface that belong to no option


def interface_clauses(model: str) -> dict[str, ConfigOption]:
    """Return the options of an interface on this model."""
    return {
        "description": Word("description"),
        "enabled": Flag(("shutdown",), when=False),
        "mtu": Word("mtu", 1500),
        "address": Word("ip address", single=True),
        "mode": SwitchportMode(),
        "access_vlan": Word("switchport access vlan", 1),
        "native_vlan": Word("switchport trunk native vlan", 1),
        "trunk_vlans": TrunkVlans(),
        "port_channel": ChannelGroup(),
        "edge": Flag(("spanning-tree portfast",)),
        "lldp": Flag(("no lldp transmit", "no lldp receive"), when=False),
        "dscp_trust": Flag(("qos trust dscp",)),
        "no_drop": NoDrop(),
        "ecn": Ecn("uc-tx-queue" if _UNICAST_QUEUES.match(model) else "tx-queue"),
    }


SETTINGS: dict[str, ConfigOption] = {
    "hostname": Word("hostname", "localhost"),
    "lldp": Flag(("no lldp run",), when=False),
    "spanning_tree": Word("spanning-tree mode", "mstp"),
    "ntp_servers": Lines("ntp server"),
    "syslog_servers": Lines("logging host"),
    "gateways": Lines("ip route 0.0.0.0/0"),
    "snmp_location": Word("snmp-server location"),
    "snmp_contact": Word("snmp-server contact"),
    "snmp_communities": Lines("snmp-server community", " ro"),
    "pfc_watchdog_timeout": Word("priority-flow-control pause watchdog default timeout", 0.0),
    "pfc_watchdog_recovery": Word("priority-flow-control pause watchdog default recovery-time", 0.0),
    "pfc_watchdog_action": Word("priority-flow-control pause watchdog action", "errdisable"),
}

_SECRET = ("snmp_communities",)
_LISTS = ("trunk_vlans", "no_drop", _OTHER)

VLAN = Family("vlan", (Field("name"),))
INTERFACE = Family(
    "interface",
    tuple(Field(name, Mode.SET if name in _LISTS else Mode.STRICT) for name in (*interface_clauses(""), _OTHER)),
    key="name",
)
SETTING = Family(
    "setting", (Field("value", view=lambda value: sorted(set(value)) if isinstance(value, list) else value),)
)
FAMILIES = (VLAN, INTERFACE, SETTING)

Objects = dict[str, list[Object]]  # by the plural of their family


@dataclass(frozen=True)
class Config:
    """Running configuration. ``objects`` include defaults."""

    hostname: str
    model: str
    objects: Objects

    @property
    def clauses(self) -> dict[str, ConfigOption]:
        """Options of its interfaces."""
        return interface_clauses(self.model)

    def gathered(self) -> Object:
        """Return the configuration in the form of the option ``config``, without defaults and secrets."""
        interfaces = []
        for item in self.objects["interfaces"]:
            options = {
                name: item[name]
                for name, clause in self.clauses.items()
                if item[name] is not None and item[name] != clause.default
            }
            if options or item["name"].startswith(_VIRTUAL):
                interfaces.append({"name": item["name"], **options})
        values = {item["id"]: item["value"] for item in self.objects["settings"] if item["id"] not in _SECRET}
        settings = {name: value for name, value in values.items() if value != SETTINGS[name].default}
        vlans = [item for item in self.objects["vlans"] if item != _FIRST_VLAN]
        return {"vlans": vlans, "interfaces": interfaces, **settings}


def read(text: str) -> Config:
    """Return the objects of a running configuration."""
    hostname, model = device(text)
    clauses = interface_clauses(model)
    nodes = parse(text)
    vlans: list[Object] = []
    interfaces: list[Object] = []
    for node in nodes:
        word, _space, rest = node.line.partition(" ")
        if word == "vlan" and rest[:1].isdigit():
            names = [child.line[5:] for child in node.children if child.line.startswith("name ")]
            vlans += [{"id": number, "name": names[0] if names else _default_name(number)} for number in numbers(rest)]
        elif word == "interface":
            interfaces.append(_interface(rest, node.children, clauses))
    if not any(item["id"] == 1 for item in vlans):
        vlans.insert(0, dict(_FIRST_VLAN))
    settings = [{"id": name, "value": clause.read(nodes)[0]} for name, clause in SETTINGS.items()]
    return Config(hostname, model, {"vlans": vlans, "interfaces": interfaces, "settings": settings})


def _interface(name: str, nodes: list[Node], clauses: dict[str, ConfigOption]) -> Object:
    item: Object = {"name": name}
    parsed: set[int] = set()
    for option, clause in clauses.items():
        item[option], used = clause.read(nodes)
        parsed.update(map(id, used))
    item[_OTHER] = [node.line for node in nodes if id(node) not in parsed]
    return item


def _default_name(vlan: int) -> str:
    return _FIRST_VLAN["name"] if vlan == 1 else "VLAN%04d" % vlan


def desired(params: Object, actual: Config | None, replace: bool) -> Objects:
    """Return the desired objects of the option ``config``. Raises UserError.

    With ``replace`` omitted options of a named interface get their default, and lists are replaced. Without it,
    omitted options stay unchanged, and members are added to lists. Objects that are not named stay unchanged.
    ``actual`` is None if the switch was not read.
    """
    params = _normalized(params)
    clauses = actual.clauses if actual else interface_clauses("")
    current = {item["name"]: item for item in actual.objects["interfaces"]} if actual else {}
    vlans = [
        {"id": item["id"], "name": _default_name(item["id"]) if item["name"] == "" else item["name"]}
        for item in params["vlans"] or ()
    ]
    for item in vlans:
        if not 1 <= item["id"] <= 4094:
            raise UserError("Cannot configure VLAN %d: VLAN IDs are 1 to 4094. Change its id." % item["id"])
    interfaces = []
    for item in params["interfaces"] or ():
        name = item["name"]
        if not _INTERFACE_NAME.fullmatch(name):
            raise UserError(
                "Cannot configure interface '%s': this is not a full interface name. Write it like Ethernet9/1 or "
                "Port-Channel1." % name
            )
        if actual and name not in current and not name.startswith(_VIRTUAL):
            raise UserError(
                "Cannot configure interface '%s': switch '%s' (%s) has no such port. Check its port map."
                % (name, actual.hostname or "localhost", actual.model or "unknown model")
            )
        options = {option: item[option] for option in clauses if item.get(option) is not None}
        if replace:
            options = {**{option: clause.default for option, clause in clauses.items()}, _OTHER: [], **options}
        else:
            for option in _LISTS:
                present = current.get(name, {}).get(option)
                if option in options and present is not None and present != _default(clauses, option):
                    options[option] = sorted({*options[option], *present})
        interfaces.append({"name": name, **options})
    values = {item["id"]: item["value"] for item in actual.objects["settings"]} if actual else {}
    settings = []
    for name in SETTINGS:
        value = params.get(name)
        if value is not None:
            if isinstance(value, list) and not replace:
                value = [*values.get(name, ()), *(each for each in value if each not in values.get(name, ()))]
            settings.append({"id": name, "value": value})
    return {"vlans": vlans, "interfaces": interfaces, "settings": settings}


def _normalized(value: t.Any) -> t.Any:
    """Return the value with all texts in the form of EOS: words separated by single spaces.

    Raises UserError for a text with a line break or another character that is not printable.
    """
    if isinstance(value, dict):
        return {key: _normalized(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_normalized(item) for item in value]
    if not isinstance(value, str):
        return value
    if not value.isprintable():
        raise UserError(
            "Cannot configure the text %r: it contains a character that is not printable. Remove it." % value
        )
    return " ".join(value.split())


def _default(clauses: dict[str, ConfigOption], option: str) -> t.Any:
    return clauses[option].default if option in clauses else []


def commands(steps: list[Step], clauses: dict[str, ConfigOption]) -> list[str]:
    """Return the commands of the steps in configuration mode."""
    result: list[str] = []
    for step in steps:
        if step.action is not Action.NONE and step.desired is not None:
            result += _WRITERS[step.family.kind](step.desired, step, clauses)
    return result


def _vlan_commands(item: Object, step: Step, clauses: dict[str, ConfigOption]) -> list[str]:
    return ["vlan %d" % item["id"], *(["name %s" % item["name"]] if item["name"] else []), "exit"]


def _interface_commands(item: Object, step: Step, clauses: dict[str, ConfigOption]) -> list[str]:
    before = step.before or {option: clause.default for option, clause in clauses.items()}
    changed = {f.name for f in INTERFACE.fields if f.differs(item, before)}
    inside = [negated(line) for line in before.get(_OTHER, ())] if _OTHER in changed else []
    for option, clause in clauses.items():
        if option in changed:
            inside += clause.write(item[option], before.get(option))
    return ["interface %s" % item["name"], *inside, "exit"]


def _setting_commands(item: Object, step: Step, clauses: dict[str, ConfigOption]) -> list[str]:
    clause = SETTINGS[item["id"]]
    return clause.write(item["value"], step.before["value"] if step.before else clause.default)


_WRITERS: dict[str, t.Callable[[Object, Step, dict[str, ConfigOption]], list[str]]] = {
    "vlan": _vlan_commands,
    "interface": _interface_commands,
    "setting": _setting_commands,
}
