# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is configured on a switch, as objects of the reconcile engine, and the commands that change it. Pure."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ..reconcile import Action, Family, Field, Mode, Object, SentenceError, Step
from .clauses import ChannelGroup, Clause, Ecn, Flag, Lines, NoDrop, SwitchportMode, TrunkVlans, Word, negated
from .config import Node, device, numbers, parse

_INTERFACE_NAME = re.compile(r"(Ethernet\d+(/\d+){0,2}|Management\d+(/\d+)?|Port-Channel\d+|Vlan\d+)")
# Those that come into being when they are configured.
_VIRTUAL = ("Port-Channel", "Vlan")
# Platforms whose queues for unicast have a name of their own.
_UNICAST_QUEUES = re.compile(r"DCS-7(05|06|26)0")
_FIRST_VLAN: Object = {"id": 1, "name": "default"}  # always there, and printed only when it has another name
_OTHER = "other"  # lines of an interface that no option speaks of


def interface_clauses(model: str) -> dict[str, Clause]:
    """The options of an interface of a switch of this model."""
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


SETTINGS: dict[str, Clause] = {
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
    """A running configuration. ``objects`` tell everything, also what is as it is by default."""

    hostname: str
    model: str
    objects: Objects

    @property
    def clauses(self) -> dict[str, Clause]:
        """The options of its interfaces."""
        return interface_clauses(self.model)

    def gathered(self) -> Object:
        """In the words of the module's option, without what is as it is by default, and without secrets."""
        interfaces = []
        for item in self.objects["interfaces"]:
            said = {
                name: item[name]
                for name, clause in self.clauses.items()
                if item[name] is not None and item[name] != clause.default
            }
            if said or item["name"].startswith(_VIRTUAL):
                interfaces.append({"name": item["name"], **said})
        values = {item["id"]: item["value"] for item in self.objects["settings"] if item["id"] not in _SECRET}
        settings = {name: value for name, value in values.items() if value != SETTINGS[name].default}
        vlans = [item for item in self.objects["vlans"] if item != _FIRST_VLAN]
        return {"vlans": vlans, "interfaces": interfaces, **settings}


def read(text: str) -> Config:
    """A running-config as objects."""
    hostname, model = device(text)
    clauses = interface_clauses(model)
    nodes = parse(text)
    vlans: list[Object] = []
    interfaces: list[Object] = []
    for node in nodes:
        word, _space, rest = node.line.partition(" ")
        if word == "vlan" and rest[:1].isdigit():
            names = [below.line[5:] for below in node.below if below.line.startswith("name ")]
            vlans += [{"id": number, "name": names[0] if names else _default_name(number)} for number in numbers(rest)]
        elif word == "interface":
            interfaces.append(_interface(rest, node.below, clauses))
    if not any(item["id"] == 1 for item in vlans):
        vlans.insert(0, dict(_FIRST_VLAN))
    settings = [{"id": name, "value": clause.read(nodes)[0]} for name, clause in SETTINGS.items()]
    return Config(hostname, model, {"vlans": vlans, "interfaces": interfaces, "settings": settings})


def _interface(name: str, nodes: list[Node], clauses: dict[str, Clause]) -> Object:
    item: Object = {"name": name}
    understood: set[int] = set()
    for option, clause in clauses.items():
        item[option], used = clause.read(nodes)
        understood.update(map(id, used))
    item[_OTHER] = [node.line for node in nodes if id(node) not in understood]
    return item


def _default_name(vlan: int) -> str:
    return _FIRST_VLAN["name"] if vlan == 1 else "VLAN%04d" % vlan


def wanted(params: Object, there: Config | None, replace: bool) -> Objects:
    """The objects that the module's option asks for. Raises SentenceError.

    With ``replace`` what it does not say of an interface it names shall be as it is by default; without,
    lists are added to. Nothing is asked of what it does not name. ``there`` is None for a switch that
    nobody asked.
    """
    params = _as_read(params)
    clauses = there.clauses if there else interface_clauses("")
    now = {item["name"]: item for item in there.objects["interfaces"]} if there else {}
    vlans = [
        {"id": item["id"], "name": _default_name(item["id"]) if item["name"] == "" else item["name"]}
        for item in params["vlans"] or ()
    ]
    for item in vlans:
        if not 1 <= item["id"] <= 4094:
            raise SentenceError("VLAN %d is none: its number is 1 to 4094." % item["id"])
    interfaces = []
    for item in params["interfaces"] or ():
        name = item["name"]
        if not _INTERFACE_NAME.fullmatch(name):
            raise SentenceError(
                "Interface '%s' has no name that EOS prints: write it out, like Ethernet9/1 or Port-Channel1." % name
            )
        if there and name not in now and not name.startswith(_VIRTUAL):
            raise SentenceError(
                "%s has no %s: it is a %s, look at its port map."
                % (there.hostname or "The switch", name, there.model or "model with other ports")
            )
        said = {option: item[option] for option in clauses if item.get(option) is not None}
        if replace:
            said = {**{option: clause.default for option, clause in clauses.items()}, _OTHER: [], **said}
        else:
            for option in _LISTS:
                if option in said and option in now.get(name, {}) and now[name][option] != _default(clauses, option):
                    said[option] = sorted({*said[option], *now[name][option]})
        interfaces.append({"name": name, **said})
    values = {item["id"]: item["value"] for item in there.objects["settings"]} if there else {}
    settings = []
    for name in SETTINGS:
        value = params.get(name)
        if value is not None:
            if isinstance(value, list) and not replace:
                value = [*values.get(name, ()), *(each for each in value if each not in values.get(name, ()))]
            settings.append({"id": name, "value": value})
    return {"vlans": vlans, "interfaces": interfaces, "settings": settings}


def _as_read(value: t.Any) -> t.Any:
    """The same with every text as a switch reads it: words, with one space between them.

    Raises SentenceError for a text that would end a command and begin another.
    """
    if isinstance(value, dict):
        return {key: _as_read(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_read(item) for item in value]
    if not isinstance(value, str):
        return value
    if not value.isprintable():
        raise SentenceError("The text %r has a character in it that no configuration can have: leave it out." % value)
    return " ".join(value.split())


def _default(clauses: dict[str, Clause], option: str) -> t.Any:
    return clauses[option].default if option in clauses else []


def commands(steps: list[Step], clauses: dict[str, Clause]) -> list[str]:
    """The commands that carry the steps out, in configuration mode."""
    result: list[str] = []
    for step in steps:
        if step.action is not Action.NONE and step.wanted is not None:
            result += _WRITERS[step.family.kind](step.wanted, step, clauses)
    return result


def _vlan_commands(item: Object, step: Step, clauses: dict[str, Clause]) -> list[str]:
    return ["vlan %d" % item["id"], *(["name %s" % item["name"]] if item["name"] else []), "exit"]


def _interface_commands(item: Object, step: Step, clauses: dict[str, Clause]) -> list[str]:
    before = step.before or {option: clause.default for option, clause in clauses.items()}
    changed = {f.name for f in INTERFACE.fields if f.differs(item, before)}
    inside = [negated(line) for line in before.get(_OTHER, ())] if _OTHER in changed else []
    for option, clause in clauses.items():
        if option in changed:
            inside += clause.write(item[option], before.get(option))
    return ["interface %s" % item["name"], *inside, "exit"]


def _setting_commands(item: Object, step: Step, clauses: dict[str, Clause]) -> list[str]:
    clause = SETTINGS[item["id"]]
    return clause.write(item["value"], step.before["value"] if step.before else clause.default)


_WRITERS: dict[str, t.Callable[[Object, Step, dict[str, Clause]], list[str]]] = {
    "vlan": _vlan_commands,
    "interface": _interface_commands,
    "setting": _setting_commands,
}
