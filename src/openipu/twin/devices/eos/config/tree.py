# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of a switch as a tree, and its text form.

A `Block` is a mode with its settings; the root block is the whole configuration. `statements` declares settings
and their order; `edit` changes a configuration.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from openipu.twin.devices.eos.config.full_forms import in_full
from openipu.twin.devices.eos.config.interface_statements import INTERFACES
from openipu.twin.devices.eos.config.language import Mode, Statement
from openipu.twin.devices.eos.config.statements import GLOBAL, VLAN
from openipu.twin.devices.eos.ports import Ports, kind_of, natural, vlan_text

Slot = tuple[str, ...]
INDENT = "   "
_RANKS = {
    kind: next(rank for rank, entry in enumerate(GLOBAL.body) if entry is mode) for kind, mode in INTERFACES.items()
}


class Block:
    """One mode: its head line, and its settings by rank in the mode and key."""

    def __init__(self, mode: Mode, head: str = "") -> None:
        self.mode = mode
        self.head = head
        self.items: dict[tuple[int, Slot], str | Block] = {}

    def copy(self) -> Block:
        """Return a deep copy."""
        copy = Block(self.mode, self.head)
        copy.items = {key: item.copy() if isinstance(item, Block) else item for key, item in self.items.items()}
        return copy

    def get(self, *slot: str) -> str | None:
        """Return the line of a setting, or None when it has its default."""
        for (_, name), item in self.items.items():
            if name == slot and isinstance(item, str):
                return item
        return None

    def all(self, *start: str) -> list[str]:
        """Return the lines of all settings whose keys begin with these words, in order."""
        return [item for (_, name), item in self.sorted() if name[: len(start)] == start and isinstance(item, str)]

    def block(self, *slot: str) -> Block | None:
        """Return an inner block, or None."""
        for (_, name), item in self.items.items():
            if name == slot and isinstance(item, Block):
                return item
        return None

    def blocks(self, *start: str) -> list[Block]:
        """Return the inner blocks whose keys begin with these words, in order."""
        return [item for (_, name), item in self.sorted() if name[: len(start)] == start and isinstance(item, Block)]

    def value(self, *slot: str) -> str | None:
        """Return the rest of the line of a setting after its key, or None when it has its default."""
        line = self.get(*slot)
        return None if line is None else line[len(" ".join(slot)) :].strip()

    def sorted(self) -> list[tuple[tuple[int, Slot], str | Block]]:
        """Return keys and settings in the order of EOS."""
        return sorted(self.items.items(), key=lambda pair: (pair[0][0], _order(pair[0][1])))

    def lines(self, indent: str = INDENT, full: bool = False) -> list[str]:
        """Return the lines below the head line; `full` includes defaults."""
        printed: list[str] = []
        after_block = False
        for _, item in self.printed_items(full):
            # EOS prints `!` before and after an inner block.
            if isinstance(item, Block) or after_block:
                printed.append(indent + "!")
            after_block = isinstance(item, Block)
            if isinstance(item, Block):
                printed += [indent + item.head, *item.lines(indent + INDENT, full)]
            else:
                printed.append(indent + item)
        return printed

    def printed_items(self, full: bool = False) -> list[tuple[int, str | Block]]:
        """Return rank and item of all printed settings in order, including printed defaults."""
        printed: dict[int, list[str | Block]] = {}
        for (rank, _), item in self.sorted():
            if isinstance(item, Block) and item.mode.hide_empty and not item.items:
                continue
            printed.setdefault(rank, []).append(in_full(item) if full and isinstance(item, str) else item)
        for rank, entry in enumerate(self.mode.body):
            if isinstance(entry, Statement) and rank not in printed:
                line = (entry.full or entry.shown) if full else entry.shown
                if line:
                    printed[rank] = [line]
        return [(rank, item) for rank in sorted(printed) for item in _merge_vlans(printed[rank])]

    def tree(self) -> dict[str, Any]:
        """Return the JSON form of the settings in eAPI."""
        return {
            (item.head if isinstance(item, Block) else item): (
                {"comments": [], "cmds": item.tree()} if isinstance(item, Block) else None
            )
            for _, item in self.printed_items()
        }


class Config:
    """Whole configuration of a switch with these ports."""

    def __init__(self, ports: Ports, root: Block | None = None) -> None:
        self.ports = ports
        self.root = root or Block(GLOBAL)
        if root is None:
            for name in ports.physical:
                self.interface(name)

    def copy(self) -> Config:
        """Return a deep copy."""
        return Config(self.ports, self.root.copy())

    def interface(self, name: str) -> Block:
        """Return the block of an interface; create it if necessary."""
        key = (_RANKS[kind_of(name)], ("interface", name))
        block = self.root.items.setdefault(key, Block(INTERFACES[kind_of(name)], f"interface {name}"))
        assert isinstance(block, Block)
        return block

    def interfaces(self) -> dict[str, Block]:
        """Return the blocks of all interfaces by name, in the order of EOS."""
        return {block.head.split()[1]: block for block in self.root.blocks("interface")}

    def vlans(self) -> dict[int, Block]:
        """Return the blocks of all VLANs by number; VLAN 1 always exists."""
        found = {int(block.head.split()[1]): block for block in self.root.blocks("vlan")}
        return dict(sorted(({1: Block(VLAN, "vlan 1")} | found).items()))

    def lines(self, full: bool = False) -> list[str]:
        """Return the lines that EOS prints, without header and `end`; `full` includes defaults."""
        printed: list[str] = []
        for section in self._sections(full):
            printed += [*(["!"] if printed else []), *section]
        return printed

    def _sections(self, full: bool) -> Iterator[list[str]]:
        grouped: list[str] = []
        last = ""
        for rank, item in self.root.printed_items(full):
            entry = GLOBAL.body[rank]
            group = entry.group if isinstance(entry, Statement) else ""
            if grouped and group != last:
                yield grouped
                grouped = []
            last = group
            if isinstance(item, Block):
                yield [item.head, *item.lines(full=full)]
            else:
                grouped += item.split("\n")
        if grouped:
            yield grouped


def _merge_vlans(items: Iterable[str | Block]) -> list[str | Block]:
    """Merge VLANs with equal settings into one block, as EOS prints them."""
    printed: list[str | Block] = []
    equal: dict[tuple[str, ...], tuple[Block, list[int]]] = {}
    for item in items:
        if isinstance(item, Block) and item.mode is VLAN:
            body = tuple(item.lines())
            if body in equal:
                equal[body][1].append(int(item.head.split()[1]))
                continue
            shown = item.copy()
            equal[body] = (shown, [int(item.head.split()[1])])
            printed.append(shown)
        else:
            printed.append(item)
    for block, vlans in equal.values():
        block.head = f"vlan {vlan_text(vlans)}"
    return printed


def _order(slot: Slot) -> tuple[Any, ...]:
    """Return the sort key of a setting: natural order of names and numbers."""
    if slot[0] == "interface" and len(slot) == 2:
        return natural(slot[1])
    return tuple(
        tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", word) if part)
        for word in slot
    )


def section(lines: Iterable[str], pattern: str) -> list[str]:
    """Return the lines of all sections with a matching line, as the filter `| section` does."""
    matcher = re.compile(pattern)
    return [line for piece in sections(lines) if any(map(matcher.search, piece)) for line in piece]


def sections(lines: Iterable[str]) -> list[list[str]]:
    """Split a printed configuration into sections: an unindented line with the indented lines below it."""
    pieces: list[list[str]] = []
    for line in lines:
        if line.startswith(" ") and pieces:
            pieces[-1].append(line)
        elif line not in {"!", "end"} and not line.startswith("! "):
            pieces.append([line])
    return pieces


def diff(before: Config, after: Config, before_name: str, after_name: str) -> str:
    """Return the unified diff of two configurations, as EOS prints it; empty without changes."""
    return "\n".join(difflib.unified_diff(before.lines(), after.lines(), before_name, after_name, lineterm=""))
