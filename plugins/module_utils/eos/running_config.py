# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running configuration as printed by EOS: a tree of lines by indentation. No I/O."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

_DEVICE = re.compile(r"^! device: (\S+) \((\S+?),", re.MULTILINE)
# Values after these words are secret, also in lines that the module does not manage.
_SECRETS = re.compile(
    r"\b(snmp-server community|secret(?: (?:sha512|\*|0|5|7))?|password(?: [07])?|key(?: 7)?|auth \S+|priv \S+) (\S+)"
)


@dataclass
class Node:
    """A line and the lines of its section."""

    line: str
    children: list[Node] = field(default_factory=list)


def parse(text: str) -> list[Node]:
    """Return the sections of a configuration, without comments, empty lines and the final ``end``."""
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
        stack[-1][1].children.append(node)
        stack.append((indent, node))
    return root.children


def device(text: str) -> tuple[str, str]:
    """Return host name and model from the header of the text; empty without a header."""
    found = _DEVICE.search(text)
    return (found[1], found[2]) if found else ("", "")


def numbers(text: str) -> list[int]:
    """Parse a list like ``10,12-14`` and sort it; ``none`` is an empty list. Raises ValueError."""
    if text.strip() == "none":
        return []
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        found.update(range(int(first), int(last) + 1) if dash else [int(first)])
    return sorted(found)


def ranges(values: t.Iterable[int]) -> str:
    """Format numbers like ``10,12-14``; ``none`` for an empty list."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(str(run[0]) if len(run) == 1 else "%d-%d" % (run[0], run[-1]) for run in runs) or "none"


def without_secrets(text: str) -> str:
    """Return the text with secrets replaced by ``<hidden>``."""
    return _SECRETS.sub(r"\1 <hidden>", text)
