# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running-config as EOS prints it: lines, and what stands indented below them. Pure."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

_DEVICE = re.compile(r"^! device: (\S+) \((\S+?),", re.MULTILINE)
# Whatever follows these words is nobody's business, also in lines that are not ours.
_SECRETS = re.compile(
    r"\b(snmp-server community|secret(?: (?:sha512|\*|0|5|7))?|password(?: [07])?|key(?: 7)?|auth \S+|priv \S+) (\S+)"
)


@dataclass
class Node:
    """A line, and the lines of its section."""

    line: str
    below: list[Node] = field(default_factory=list)


def parse(text: str) -> list[Node]:
    """The sections of a configuration. Remarks, empty lines and the last ``end`` are left out."""
    root = Node("")
    stack: list[tuple[int, Node]] = [(-1, root)]
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("!") or line == "end":
            continue
        indent = len(raw) - len(raw.lstrip())
        while stack[-1][0] >= indent:
            stack.pop()
        node = Node(line)
        stack[-1][1].below.append(node)
        stack.append((indent, node))
    return root.below


def device(text: str) -> tuple[str, str]:
    """Name and model, as the head of the text tells them; empty when it does not."""
    found = _DEVICE.search(text)
    return (found[1], found[2]) if found else ("", "")


def numbers(text: str) -> list[int]:
    """``10,12-14`` as a sorted list; ``none`` is an empty one. Raises ValueError."""
    if text.strip() == "none":
        return []
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        found.update(range(int(first), int(last) + 1) if dash else [int(first)])
    return sorted(found)


def ranges(values: t.Iterable[int]) -> str:
    """The other way: ``none`` for an empty list."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(str(run[0]) if len(run) == 1 else "%d-%d" % (run[0], run[-1]) for run in runs) or "none"


def without_secrets(text: str) -> str:
    """The same text, for people to see."""
    return _SECRETS.sub(r"\1 <hidden>", text)
