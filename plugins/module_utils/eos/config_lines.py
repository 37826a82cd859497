# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of a switch configuration: each kind reads an option from them and writes it as commands. No I/O."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .running_config import Node, numbers, ranges

ALL_VLANS = list(range(1, 4095))


class ConfigOption(t.Protocol):
    """Option of an interface or of the whole switch."""

    @property
    def default(self) -> t.Any:
        """Value of the option if no line sets it."""

    def read(self, nodes: list[Node]) -> tuple[t.Any, list[Node]]:
        """Return the value and the lines that set it."""

    def write(self, value: t.Any, before: t.Any) -> list[str]:
        """Return the commands that change the value from ``before`` to ``value``."""


@dataclass(frozen=True)
class Word:
    """Line that ends with a value: ``mtu 9214``. The default is written by removing the line.

    With ``single`` the value is one word, and lines with more words are ignored: ``ip address ... secondary``.
    """

    prefix: str
    default: t.Any = ""
    single: bool = False

    def read(self, nodes: list[Node]) -> tuple[t.Any, list[Node]]:
        kind = type(self.default)
        value, used = self.default, []
        for node in nodes:
            before, _space, rest = node.line.partition(self.prefix + " ")
            if not before and rest and not (self.single and " " in rest):
                try:
                    value = kind(rest)
                except ValueError:  # another command with the same beginning
                    continue
                used.append(node)
        return value, used

    def write(self, value: t.Any, before: t.Any) -> list[str]:
        return ["no %s" % self.prefix] if value == self.default else ["%s %s" % (self.prefix, value)]


@dataclass(frozen=True)
class Flag:
    """Boolean set by lines: ``shutdown``. All ``lines`` are present if it has the value ``when``.

    If only some of the lines are present, the value is None.
    """

    lines: tuple[str, ...]
    when: bool = True

    @property
    def default(self) -> bool:
        return not self.when

    def read(self, nodes: list[Node]) -> tuple[t.Any, list[Node]]:
        used = [node for node in nodes if node.line in self.lines]
        if used and len(used) < len(self.lines):
            return None, used
        return (self.when if used else self.default), used

    def write(self, value: t.Any, before: t.Any) -> list[str]:
        return list(self.lines) if value == self.when else [negated(line) for line in self.lines]


@dataclass(frozen=True)
class SwitchportMode:
    """Switchport mode: ``access``, ``trunk``, or ``routed`` for ``no switchport``."""

    default: str = "access"

    def read(self, nodes: list[Node]) -> tuple[t.Any, list[Node]]:
        used = [node for node in nodes if node.line == "no switchport" or node.line.startswith("switchport mode ")]
        lines = [node.line for node in used]
        if not lines:
            return self.default, used
        # A routed port keeps its previous switchport mode.
        return ("routed" if "no switchport" in lines else lines[0].split()[-1]), used

    def write(self, value: t.Any, before: t.Any) -> list[str]:
        if value == "routed":
            return ["no switchport"]
        return [*(["switchport"] if before == "routed" else []), "switchport mode %s" % value]


@dataclass(frozen=True)
class TrunkVlans:
    """VLANs of a trunk; all by default."""

    default: t.Any = field(default_factory=ALL_VLANS.copy)

    def read(self, nodes: list[Node]) -> tuple[t.Any, list[Node]]:
        prefix = "switchport trunk allowed vlan "
        used = [node for node in nodes if node.line.startswith(prefix)]
        return (numbers(used[-1].line[len(prefix) :]) if used else self.default), used

    def write(self, value: t.Any, before: t.Any) -> list[str]:
        if value == self.default:
            return ["no switchport trunk allowed vlan"]
        return ["switchport trunk allowed vlan %s" % ranges(value)]


@dataclass(frozen=True)
class ChannelGroup:
    """Membership of a port-channel."""

    default: t.Any = field(default_factory=dict)
    _line = re.compile(r"channel-group (\d+) mode (\S+)")

    def read(self, nodes: list[Node]) -> tuple[t.Any, list[Node]]:
        for node in nodes:
            if match := self._line.fullmatch(node.line):
                return {"id": int(match[1]), "lacp": match[2]}, [node]
        return self.default, []

    def write(self, value: t.Any, before: t.Any) -> list[str]:
        if not value:
            return ["no channel-group"]
        moved = before and before["id"] != value["id"]
        return [*(["no channel-group"] if moved else []), "channel-group %(id)d mode %(lacp)s" % value]


@dataclass(frozen=True)
class NoDrop:
    """Priority flow control: priorities whose frames are paused instead of dropped; empty for off."""

    default: t.Any = field(default_factory=list)
    _line = re.compile(r"priority-flow-control priority (\d) no-drop")

    def read(self, nodes: list[Node]) -> tuple[t.Any, list[Node]]:
        on = [node for node in nodes if node.line in ("priority-flow-control on", "priority-flow-control mode on")]
        lines = {node.line: node for node in nodes if self._line.fullmatch(node.line)}
        # One without the other has no effect, so it does not count as a value of this option.
        if not on or not lines:
            return self.default, []
        return sorted(int(line.split()[2]) for line in lines), [*on, *lines.values()]

    def write(self, value: t.Any, before: t.Any) -> list[str]:
        removed = [
            "no priority-flow-control priority %d no-drop" % each for each in set(before or ()) - set(value or ())
        ]
        if not value:
            return [*sorted(removed), "no priority-flow-control on"]
        return [
            "priority-flow-control on",
            *sorted(removed),
            *("priority-flow-control priority %d no-drop" % each for each in sorted(value)),
        ]


@dataclass(frozen=True)
class Ecn:
    """Congestion marking (ECN) in one queue: ``{queue, minimum, maximum}``, thresholds in kbytes."""

    queue: str  # keyword of the platform for a queue
    default: t.Any = field(default_factory=dict)
    _marking = re.compile(r"random-detect ecn minimum-threshold (\d+) kbytes maximum-threshold (\d+) kbytes.*")

    def read(self, nodes: list[Node]) -> tuple[t.Any, list[Node]]:
        for node in nodes:
            if node.line.startswith(self.queue + " "):
                for child in node.children:
                    if match := self._marking.fullmatch(child.line):
                        queue = int(node.line.split()[-1])
                        return {"queue": queue, "minimum": int(match[1]), "maximum": int(match[2])}, [node]
        return self.default, []

    def write(self, value: t.Any, before: t.Any) -> list[str]:
        commands: list[str] = []
        if before and (not value or before["queue"] != value["queue"]):
            commands += ["%s %d" % (self.queue, before["queue"]), "no random-detect ecn", "exit"]
        if value:
            marking = "random-detect ecn minimum-threshold %(minimum)d kbytes maximum-threshold %(maximum)d kbytes"
            commands += ["%s %d" % (self.queue, value["queue"]), marking % value, "exit"]
        return commands


@dataclass(frozen=True)
class Lines:
    """List with one line for each member: ``ntp server 10.1.3.101``."""

    prefix: str
    suffix: str = ""
    default: t.Any = field(default_factory=list)

    def read(self, nodes: list[Node]) -> tuple[t.Any, list[Node]]:
        start = self.prefix + " "
        used = [node for node in nodes if node.line.startswith(start) and node.line.endswith(self.suffix)]
        members = [(node, node.line[len(start) :].split()[0]) for node in used]
        # Options do not manage lines of a VRF.
        members = [(node, member) for node, member in members if member != "vrf"]
        return [member for _node, member in members], [node for node, _member in members]

    def write(self, value: t.Any, before: t.Any) -> list[str]:
        removed = [each for each in before or () if each not in value]
        new = [each for each in value if each not in (before or ())]
        return [
            *("no %s %s" % (self.prefix, each) for each in removed),
            *("%s %s%s" % (self.prefix, each, self.suffix) for each in new),
        ]


def negated(line: str) -> str:
    """Return the command that removes a line."""
    return line[3:] if line.startswith("no ") else "no " + line
