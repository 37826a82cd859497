# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults in a file: lines of ``openipu.twin.faults``, as plain text or as a list in YAML."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from openipu.twin.faults import FaultError, parse


class Entry(NamedTuple):
    """A fault of a file, and where it stands there."""

    place: str
    line: str


def read(path: Path) -> list[Entry]:
    """The faults of a file, in its order. Raises FaultError with file and line.

    ``.yml`` and ``.yaml`` hold a list of strings, another name one fault in each line; ``#`` begins a
    remark in both.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise FaultError(f"Cannot read the faults in {path}: {reason}.") from None
    numbered = _listed(path, text) if path.suffix in (".yml", ".yaml") else enumerate(text.splitlines(), 1)
    entries = []
    for number, line in numbered:
        if line.split("#")[0].strip():
            place = _place(path, number)
            try:
                entries.append(Entry(place, shlex.join(parse(line))))
            except FaultError as error:
                raise FaultError(f"{place}: {error}") from None
    return entries


def _listed(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """The items of a list in YAML, each with its line."""
    try:
        document = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise FaultError(f"{_place(path, mark.line + 1 if mark else 1)}: Cannot read this: {problem}.") from None
    if document is None:
        return
    items = document.value if isinstance(document, yaml.SequenceNode) else [document]
    for item in items:
        number = item.start_mark.line + 1
        if not isinstance(document, yaml.SequenceNode) or not isinstance(item, yaml.ScalarNode):
            raise FaultError(f"{_place(path, number)}: Write a list with a fault in each item, like: - unplug ag03:7")
        yield number, item.value


def _place(path: Path, number: int) -> str:
    return f"{path} line {number}"
