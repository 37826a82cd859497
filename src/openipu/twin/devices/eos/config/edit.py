# SPDX-License-Identifier: GPL-3.0-or-later
"""Editor of a configuration: applies lines in configuration mode."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from openipu.twin.devices.eos.config.grammar import CliError, Match, ParseState, compile_removal, compile_syntax, parse
from openipu.twin.devices.eos.config.interface_statements import INTERFACES
from openipu.twin.devices.eos.config.language import Mode, Statement
from openipu.twin.devices.eos.config.rules import RULES, Change
from openipu.twin.devices.eos.config.statements import ALIASES, GLOBAL
from openipu.twin.devices.eos.config.tree import Block, Config, Slot
from openipu.twin.devices.eos.config.users import parse_user, remove_options
from openipu.twin.devices.eos.ports import Ports, kind_of, vlan_set


@dataclass(frozen=True)
class Frame:
    """Active mode and the blocks that it edits; a range of ports has several blocks."""

    mode: Mode
    blocks: tuple[Block, ...]


class Editor:
    """Configuration mode of one configuration.

    Args:
        config: configuration to change.
        engine: SNMP engine id of the switch, in hexadecimal.
    """

    def __init__(self, config: Config, engine: str = "") -> None:
        self.config = config
        self.engine = engine
        self.frames = [Frame(GLOBAL, (config.root,))]

    def leave(self) -> bool:
        """Leave the innermost mode (`exit`); return False if that is configuration mode itself."""
        if len(self.frames) == 1:
            return False
        self.frames.pop()
        return True

    def line(self, words: Sequence[str], entered: str = "", complete: bool = False) -> None:
        """Apply one line in the innermost mode that declares it, as EOS does.

        Args:
            words: words of the line.
            entered: text entered after the line, for a banner.
            complete: whether words may be abbreviated.

        Raises:
            CliError: 1002 for an invalid command, 1000 for a command that is rejected.
        """
        words = _apply_aliases(words)
        verb = words[0] if words[0] in {"no", "default"} else ""
        state = ParseState(self.config.ports, words, complete)
        for depth in reversed(range(len(self.frames))):
            frame = self.frames[depth]
            for rank, entry in enumerate(frame.mode.body):
                match, slot = _parse(entry, state, bool(verb))
                if match is None:
                    continue
                del self.frames[depth + 1 :]
                if isinstance(entry, Mode):
                    self._enter(frame, rank, entry, match, verb)
                else:
                    for block in frame.blocks:
                        self._set(block, rank, entry, match, slot, verb, entered)
                return
        raise state.error()

    def _set(
        self, block: Block, rank: int, entry: Statement, match: Match, slot: Slot, verb: str, entered: str
    ) -> None:
        if verb:
            off = "no " + " ".join(slot) if entry.rule == "on_by_default" else entry.off
            _unset(block, rank, entry, match, slot)
            if off and verb == "no":
                block.items[rank, slot] = off
            return
        change = Change(self.config, block, rank, entry, match, slot, match.text, self.engine, entered)
        text = RULES[entry.rule](change) if entry.rule in RULES else match.text
        if entry.rule == "on_by_default" or (entry.off and text == entry.forms[0]) or text == entry.default:
            text = None
        block.items.pop((rank, change.slot), None)
        if text is not None:
            block.items[rank, change.slot] = text

    def _enter(self, frame: Frame, rank: int, entry: Mode, match: Match, verb: str) -> None:
        if entry.rule == "interface":
            names = match.values[0].split(",")
            if len({kind_of(name) for name in names}) > 1:
                raise CliError(1000, "Interfaces of different kinds cannot be configured together")
            if verb:
                self._reset(names, verb)
                return
            self.frames.append(Frame(INTERFACES[kind_of(names[0])], tuple(map(self.config.interface, names))))
            return
        if entry.rule == "vlan":
            heads: list[Slot] = [("vlan", str(vlan)) for vlan in sorted(vlan_set(match.values[0]))]
            if verb == "no" and ("vlan", "1") in heads:
                raise CliError(1000, "Default VLAN 1 may not be deleted")
        else:
            heads = [match.slot]
        found = []
        for parent in frame.blocks:
            for slot in heads:
                if verb:
                    parent.items.pop((rank, slot), None)
                else:
                    block = parent.items.setdefault((rank, slot), Block(entry, " ".join(slot)))
                    assert isinstance(block, Block)
                    found.append(block)
        if found:
            self.frames.append(Frame(entry, tuple(found)))

    def _reset(self, names: Iterable[str], verb: str) -> None:
        """Reset interfaces (`default interface`); `no interface` also deletes those that are not physical."""
        for name in names:
            block = self.config.interface(name)
            block.items.clear()
            if name in self.config.ports.physical or verb == "default":
                continue
            self.config.root.items = {
                key: item for key, item in self.config.root.items.items() if key[1] != ("interface", name)
            }
            if kind_of(name) == "Port-Channel":
                for member in members(self.config, name):
                    member.items = {key: item for key, item in member.items.items() if key[1] != ("channel-group",)}


def members(config: Config, lag: str) -> list[Block]:
    """Return the blocks of the member ports of a port-channel."""
    number = lag.removeprefix("Port-Channel")
    return [
        block
        for block in config.interfaces().values()
        if (line := block.get("channel-group")) and line.split()[1] == number
    ]


def parse_config(text: str, ports: Ports, engine: str = "") -> Config:
    """Return the configuration of a text.

    Raises:
        ValueError: when a line is invalid; the message names it.
    """
    editor = Editor(Config(ports), engine)
    rows = iter(enumerate(text.splitlines(), 1))
    for number, row in rows:
        words = row.split()
        if not words or words[0].startswith("!") or words == ["end"]:
            continue
        entered = ""
        if words[0] == "banner":
            entered = "\n".join(line for _, line in itertools.takewhile(lambda row: row[1] != "EOF", rows))
        if words == ["exit"]:
            editor.leave()
            continue
        try:
            editor.line(words, entered)
        except CliError as error:
            raise ValueError(
                f"Cannot apply line {number} of the configuration, {row.strip()!r}: {error.text}."
            ) from None
    return editor.config


def _parse(entry: Statement | Mode, state: ParseState, negative: bool) -> tuple[Match | None, Slot]:
    slot = entry.slot if isinstance(entry, Statement) else ""
    if isinstance(entry, Mode) and entry.rule == "interface" and entry is not INTERFACES["Ethernet"]:
        return None, ()  # All kinds of interface have the same head; one is enough to match.
    for form in entry.forms:
        elements = compile_removal(form, slot) if negative else compile_syntax(form)
        match = parse(elements, state, at=1 if negative else 0)
        if match is not None:
            return match, tuple(slot.split()) or match.slot
    return None, ()


def _unset(block: Block, rank: int, entry: Statement, match: Match, slot: Slot) -> None:
    if entry.rule == "qos_map" or entry.rule == "sequence":
        start = match.slot if entry.rule == "qos_map" else match.values[:1]
        for key in [key for key in block.items if key[0] == rank and key[1][: len(start)] == start]:
            del block.items[key]
    if entry.rule == "user":
        _unset_user(block, rank, match)
        return
    if entry.rule == "name_server" and len(slot) == 3:
        slot = ("ip", "name-server", "vrf", "default", slot[2])
    block.items.pop((rank, slot), None)
    if entry.rule == "one_address" and slot == ("ip", "address"):
        for key in [key for key in block.items if key[1][:2] == ("ip", "address")]:
            del block.items[key]


def _unset_user(block: Block, rank: int, match: Match) -> None:
    """Remove a user with the key for SSH, or only the named options of the user."""
    name, options = match.slot[1], match.words[2:]
    stored = block.items.get((rank, ("username", name)))
    if options and options[0] in {"ssh-key", "sshkey"}:
        block.items.pop((rank, ("username", name, "ssh-key")), None)
    elif not options:
        for key in [key for key in block.items if key[0] == rank and key[1][:2] == ("username", name)]:
            del block.items[key]
    elif isinstance(stored, str):
        block.items[rank, ("username", name)] = remove_options(parse_user(stored), options[0].split()).line


def _apply_aliases(words: Sequence[str]) -> list[str]:
    verb, rest = (list(words[:1]), list(words[1:])) if words[0] in {"no", "default"} else ([], list(words))
    for old, new in ALIASES.items():
        if tuple(rest[: len(old)]) == old:
            rest = [*new, *rest[len(old) :]]
    return verb + rest
