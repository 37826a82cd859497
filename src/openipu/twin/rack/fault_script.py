# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of fault files: lines of ``openipu.twin.rack.faults``, as plain text or as a list in YAML."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from openipu.twin.rack.fault_lines import FaultError, parse


class Entry(NamedTuple):
    """One fault of a file, with its file name and line number as ``place``."""

    place: str
    line: str


def read(path: Path) -> list[Entry]:
    """Return the faults of a file, in its order. Raises FaultError with file and line.

    ``.yml`` and ``.yaml`` files hold a list of strings, other files one fault in each line. ``#`` starts a comment
    in both.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise FaultError(f"Cannot read the faults in {path}: {reason}.") from None
    numbered = _yaml_items(path, text) if path.suffix in (".yml", ".yaml") else enumerate(text.splitlines(), 1)
    entries = []
    for number, line in numbered:
        if line.split("#")[0].strip():
            place = _place(path, number)
            try:
                entries.append(Entry(place, shlex.join(parse(line))))
            except FaultError as error:
                raise FaultError(f"{place}: {error}") from None
    return entries


def _yaml_items(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield the items of a YAML list, each with its line number."""
    try:
        document = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or "it is not YAML"
        line = mark.line + 1 if mark else 1
        raise FaultError(f"Cannot read the faults in {_place(path, line)}: invalid YAML: {problem}.") from None
    except RecursionError:
        raise FaultError(
            f"Cannot read the faults in {path}: it is nested too deeply. Write a list of strings."
        ) from None
    if document is None:
        return
    items = document.value if isinstance(document, yaml.SequenceNode) else [document]
    for item in items:
        number = item.start_mark.line + 1
        if not isinstance(document, yaml.SequenceNode) or not isinstance(item, yaml.ScalarNode):
            raise FaultError(
                f"Cannot read the faults in {_place(path, number)}: it is not a list of lines. "
                "Write one fault per item, like: - unplug ag03:7."
            )
        yield number, item.value


def _place(path: Path, number: int) -> str:
    return f"{path} line {number}"
