# SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration as a tree, and how EOS prints it.

A `Block` is a mode with its settings; the root block is the whole configuration. What a setting is, and where
it stands, is declared in `statements`; `edit` changes a configuration.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from openipu.twin.eos.interface_statements import INTERFACES
from openipu.twin.eos.language import Mode, Statement
from openipu.twin.eos.ports import Ports, kind_of, natural, vlan_text
from openipu.twin.eos.statements import GLOBAL, VLAN

Slot = tuple[str, ...]
INDENT = "   "
_PLACES = {
    kind: next(rank for rank, entry in enumerate(GLOBAL.body) if entry is mode) for kind, mode in INTERFACES.items()
}


class Block:
    """One mode: its head line, and its settings by place and name."""

    def __init__(self, mode: Mode, head: str = "") -> None:
        self.mode = mode
        self.head = head
        self.items: dict[tuple[int, Slot], str | Block] = {}

    def copy(self) -> Block:
        """The same settings, apart from these."""
        twin = Block(self.mode, self.head)
        twin.items = {key: item.copy() if isinstance(item, Block) else item for key, item in self.items.items()}
        return twin

    def get(self, *slot: str) -> str | None:
        """The line of a setting, or None when it is as it is by itself."""
        for (_, name), item in self.items.items():
            if name == slot and isinstance(item, str):
                return item
        return None

    def all(self, *start: str) -> list[str]:
        """The lines of all settings whose names begin so, in order."""
        return [item for (_, name), item in self.sorted() if name[: len(start)] == start and isinstance(item, str)]

    def block(self, *slot: str) -> Block | None:
        """A block inside, or None."""
        for (_, name), item in self.items.items():
            if name == slot and isinstance(item, Block):
                return item
        return None

    def blocks(self, *start: str) -> list[Block]:
        """The blocks inside whose names begin so, in order."""
        return [item for (_, name), item in self.sorted() if name[: len(start)] == start and isinstance(item, Block)]

    def value(self, *slot: str) -> str | None:
        """What follows the name of a setting in its line."""
        line = self.get(*slot)
        return None if line is None else line[len(" ".join(slot)) :].strip()

    def sorted(self) -> list[tuple[tuple[int, Slot], str | Block]]:
        """The settings as EOS orders them."""
        return sorted(self.items.items(), key=lambda pair: (pair[0][0], _order(pair[0][1])))

    def lines(self, indent: str = INDENT, full: bool = False) -> list[str]:
        """What stands under the head line; `full` with what is as it is by itself."""
        printed: list[str] = []
        after_block = False
        for _, item in self.listed(full):
            # EOS sets a block inside apart from what is before and after it.
            if isinstance(item, Block) or after_block:
                printed.append(indent + "!")
            after_block = isinstance(item, Block)
            if isinstance(item, Block):
                printed += [indent + item.head, *item.lines(indent + INDENT, full)]
            else:
                printed.append(indent + item)
        return printed

    def listed(self, full: bool = False) -> list[tuple[int, str | Block]]:
        """The settings in order, each with its place, with those that EOS prints although nobody made them."""
        wanted: dict[int, list[str | Block]] = {}
        for (rank, _), item in self.sorted():
            if isinstance(item, Block) and item.mode.fleeting and not item.items:
                continue
            wanted.setdefault(rank, []).append(item)
        for rank, entry in enumerate(self.mode.body):
            if isinstance(entry, Statement) and rank not in wanted:
                line = (entry.full or entry.shown) if full else entry.shown
                if line:
                    wanted[rank] = [line]
        return [(rank, item) for rank in sorted(wanted) for item in _together(wanted[rank])]

    def tree(self) -> dict[str, Any]:
        """The settings as eAPI gives them in JSON."""
        return {
            (item.head if isinstance(item, Block) else item): (
                {"comments": [], "cmds": item.tree()} if isinstance(item, Block) else None
            )
            for _, item in self.listed()
        }


class Config:
    """A whole configuration of a switch with these ports."""

    def __init__(self, ports: Ports, root: Block | None = None) -> None:
        self.ports = ports
        self.root = root or Block(GLOBAL)
        if root is None:
            for name in ports.physical:
                self.interface(name)

    def copy(self) -> Config:
        """The same configuration, apart from this one."""
        return Config(self.ports, self.root.copy())

    def interface(self, name: str) -> Block:
        """The block of an interface, made when it is not there."""
        key = (_PLACES[kind_of(name)], ("interface", name))
        block = self.root.items.setdefault(key, Block(INTERFACES[kind_of(name)], f"interface {name}"))
        assert isinstance(block, Block)
        return block

    def interfaces(self) -> dict[str, Block]:
        """All interfaces by name, in EOS's order."""
        return {block.head.split()[1]: block for block in self.root.blocks("interface")}

    def vlans(self) -> dict[int, Block]:
        """All VLANs by number; VLAN 1 is always there."""
        found = {int(block.head.split()[1]): block for block in self.root.blocks("vlan")}
        return dict(sorted(({1: Block(VLAN, "vlan 1")} | found).items()))

    def lines(self, full: bool = False) -> list[str]:
        """The configuration as EOS prints it, without head and `end`."""
        printed: list[str] = []
        for section in self._sections(full):
            printed += [*(["!"] if printed else []), *section]
        return printed

    def _sections(self, full: bool) -> Iterator[list[str]]:
        waiting: list[str] = []
        last = ""
        for rank, item in self.root.listed(full):
            entry = GLOBAL.body[rank]
            group = entry.group if isinstance(entry, Statement) else ""
            if waiting and group != last:
                yield waiting
                waiting = []
            last = group
            if isinstance(item, Block):
                yield [item.head, *item.lines(full=full)]
            else:
                waiting += item.split("\n")
        if waiting:
            yield waiting


def _together(items: Iterable[str | Block]) -> list[str | Block]:
    """VLANs that are alike in one block, as EOS prints them."""
    printed: list[str | Block] = []
    alike: dict[tuple[str, ...], tuple[Block, list[int]]] = {}
    for item in items:
        if isinstance(item, Block) and item.mode is VLAN:
            body = tuple(item.lines())
            if body in alike:
                alike[body][1].append(int(item.head.split()[1]))
                continue
            shown = item.copy()
            alike[body] = (shown, [int(item.head.split()[1])])
            printed.append(shown)
        else:
            printed.append(item)
    for block, vlans in alike.values():
        block.head = f"vlan {vlan_text(vlans)}"
    return printed


def _order(slot: Slot) -> tuple[Any, ...]:
    """Names with numbers in them in the order of the numbers."""
    if slot[0] == "interface" and len(slot) == 2:
        return natural(slot[1])
    return tuple(
        tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", word) if part)
        for word in slot
    )


def section(lines: Iterable[str], pattern: str) -> list[str]:
    """The sections of a printed configuration in which a line matches, whole, as `| section` gives them."""
    wanted = re.compile(pattern)
    return [line for piece in sections(lines) if any(map(wanted.search, piece)) for line in piece]


def sections(lines: Iterable[str]) -> list[list[str]]:
    """A printed configuration in pieces: each line at its left edge, with what is indented under it."""
    pieces: list[list[str]] = []
    for line in lines:
        if line.startswith(" ") and pieces:
            pieces[-1].append(line)
        elif line not in {"!", "end"} and not line.startswith("! "):
            pieces.append([line])
    return pieces


def diff(before: Config, after: Config, named_before: str, named_after: str) -> str:
    """The change from one configuration to another, as EOS prints it; empty when there is none."""
    return "\n".join(difflib.unified_diff(before.lines(), after.lines(), named_before, named_after, lineterm=""))
