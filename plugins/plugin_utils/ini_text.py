# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Merge of settings into the text of an INI file of OpenStack. No I/O.

Comments, the order of lines and template expressions are kept, because administrators edit these files, and Kolla
Ansible renders them. So this module edits lines. A parser that writes the file again would lose all three.
"""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import dataclass

_SECTION = re.compile(r"\[(?P<name>[^\]]+)\]")
# Lines of template statements begin with a brace, comments with a hash sign or a semicolon.
_OPTION = re.compile(r"(?P<name>[^\s\[{#;=:][^=:]*?)\s*[=:]\s*(?P<value>.*)")
_LIST_CHARACTER = r"[\w.:-]"
_ORPHANS = ""  # section of options before the first section


@dataclass(frozen=True)
class _Entry:
    """One assignment: its lines from ``start`` to before ``end``, and its value without line breaks."""

    start: int
    end: int
    value: str


class IniText:
    """Lines of an INI file, in which an option may have several values."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def values(self, section: str, option: str) -> list[str]:
        """Return the values of an option in the order of the file."""
        return [entry.value for entry in self._entries(section, option)]

    def replace(self, section: str, option: str, values: t.Sequence[str]) -> None:
        """Replace all values of an option. The new ones follow the place of the first old one."""
        entries = self._entries(section, option)
        position = entries[0].start if entries else self._end_of(section)
        for entry in reversed(entries):
            del self._lines[entry.start : entry.end]
        self._lines[position:position] = [f"{option} = {value}" for value in values]

    def _entries(self, section: str, option: str) -> list[_Entry]:
        found = []
        for number, name in self._line_sections():
            match = _OPTION.match(self._lines[number])
            if match and name == section and match["name"] == option:
                end = self._end_of_value(number)
                parts = [match["value"], *self._lines[number + 1 : end]]
                found.append(_Entry(number, end, "".join(part.strip() for part in parts)))
        return found

    def _end_of_value(self, number: int) -> int:
        """Return the line after a value, which continues on indented lines."""
        end = number + 1
        while end < len(self._lines) and self._lines[end][:1].isspace() and self._lines[end].strip():
            end += 1
        return end

    def _end_of(self, section: str) -> int:
        """Return the line after the last line with text of a section, which is added when missing."""
        numbers = [number for number, name in self._line_sections() if name == section and self._lines[number].strip()]
        if not numbers:
            blank = [""] if self._lines and self._lines[-1].strip() else []
            self._lines += [*blank, f"[{section}]"]
            return len(self._lines)
        return numbers[-1] + 1

    def _line_sections(self) -> t.Iterator[tuple[int, str]]:
        section = _ORPHANS
        for number, line in enumerate(self._lines):
            if match := _SECTION.match(line):
                section = match["name"]
            yield number, section


def merge(text: str, settings: t.Sequence[t.Mapping[str, t.Any]], inherited: t.Sequence[str] = ()) -> str:
    """Return the text of an INI file with settings added.

    ``inherited`` has the texts of files that the file overrides, the strongest last. A value in them counts, because
    a new list in this file would hide it. Raise ValueError for a setting without a rule.
    """
    ini, weaker = IniText(text), [IniText(one) for one in inherited]
    for setting in settings:
        section, option = setting["section"], setting["option"]
        below = (one.values(section, option) for one in reversed(weaker))
        current = ini.values(section, option) or next((values for values in below if values), [])
        desired = _desired(current, setting)
        if desired != current:
            ini.replace(section, option, desired)
    return str(ini)


def _desired(current: list[str], setting: t.Mapping[str, t.Any]) -> list[str]:
    for name, rule in _RULES.items():
        if name in setting:
            return rule(current, setting)
    raise ValueError(f"a setting of {setting['option']!r} has none of {', '.join(_RULES)}")


def _value(current: list[str], setting: t.Mapping[str, t.Any]) -> list[str]:
    return [*current[:-1], str(setting["value"])]


def _default(current: list[str], setting: t.Mapping[str, t.Any]) -> list[str]:
    return current or [str(setting["default"])]


def _minimum(current: list[str], setting: t.Mapping[str, t.Any]) -> list[str]:
    kept = bool(current) and (not current[-1].isdigit() or int(current[-1]) >= int(setting["minimum"]))
    return current if kept else [*current[:-1], str(setting["minimum"])]


def _items(current: list[str], setting: t.Mapping[str, t.Any]) -> list[str]:
    """Add items to a list with commas. A template expression in it is kept, and names in the expression count."""
    text = current[-1] if current else str(setting.get("initial", ""))
    for item in setting["items"]:
        text = _with_item(text, str(item))
    return [*current[:-1], text] if text or current else []


def _pairs(current: list[str], setting: t.Mapping[str, t.Any]) -> list[str]:
    """Set pairs of name and value in a list with commas. With ``keep``, names of the list keep their values."""
    text = current[-1] if current else ""
    for name, value in setting["pairs"].items():
        pair = f"{name}:{value}"
        found = re.search(rf"(?<!{_LIST_CHARACTER}){re.escape(name)}:[\w.-]+", text)
        if not found:
            text = _with_item(text, pair)
        elif not setting.get("keep"):
            text = text[: found.start()] + pair + text[found.end() :]
    return [*current[:-1], text] if text or current else []


def _objects(current: list[str], setting: t.Mapping[str, t.Any]) -> list[str]:
    """Add objects to an option that has one JSON object in each value."""
    known = [_parsed(value) for value in current]
    return [*current, *(json.dumps(item) for item in setting["objects"] if item not in known)]


def _parsed(value: str) -> t.Any:
    try:
        return json.loads(value)
    except ValueError:
        return None


def _with_item(text: str, item: str) -> str:
    if re.search(rf"(?<!{_LIST_CHARACTER}){re.escape(item)}(?!{_LIST_CHARACTER})", text):
        return text
    return f"{text.rstrip(', ')},{item}" if text else item


_RULES: dict[str, t.Callable[[list[str], t.Mapping[str, t.Any]], list[str]]] = {
    "value": _value,
    "default": _default,
    "minimum": _minimum,
    "items": _items,
    "pairs": _pairs,
    "objects": _objects,
}
