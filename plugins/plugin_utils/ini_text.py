# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Merge of settings into the text of an INI file of OpenStack. No I/O.

Comments, the order of lines and template expressions are kept, because administrators edit these files, and Kolla
Ansible renders them. So this module edits lines. A parser that writes the file again would lose all three.
"""

from __future__ import annotations

import itertools
import json
import re
import typing as t
from dataclasses import dataclass

_SECTION = re.compile(r"\[(?P<name>[^\]]+)\]")
# Lines of template statements begin with a brace, comments with a hash sign or a semicolon.
_OPTION = re.compile(r"(?P<name>[^\s\[{#;=:][^=:]*?)\s*[=:]\s*(?P<value>.*)")
_LIST_CHARACTER = r"[\w.:-]"
_ORPHANS = ""  # section of options before the first section
_STATEMENT = re.compile(r"\{%.*?%\}")
# Comments and expressions match first, because braces in them are text. Contents of raw blocks are read too: Kayobe
# leaves them to Kolla Ansible.
_BLOCK = re.compile(r"\{#.*?#\}|\{\{.*?\}\}|\{%[-+]?\s*(?P<end>end)?(?P<keyword>if|for|macro|call)\b", re.DOTALL)


class ConditionalOptionError(ValueError):
    """Raised when a template statement decides whether a file has an option or its section."""


@dataclass(frozen=True)
class _Entry:
    """One assignment: its lines from ``start`` to before ``end``, and its value without line breaks."""

    start: int
    end: int
    value: str


class IniText:
    """Lines of an INI file, in which an option may have several values. Messages contain ``title``."""

    def __init__(self, text: str, title: str = "the file") -> None:
        self._lines = text.splitlines()
        self._title = title

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def values(self, section: str, option: str) -> list[str]:
        """Return the values of an option in the order of the file. Raise an error for a conditional option."""
        self._reject_conditional(section, option, lambda part: _matches(_OPTION, part, option))
        return [entry.value for entry in self._entries(section, option)]

    def replace(self, section: str, option: str, values: t.Sequence[str]) -> None:
        """Replace all values of an option. The new ones follow the place of the first old one.

        Raise an error for a conditional section.
        """
        self._reject_conditional(section, option, lambda part: _matches(_SECTION, part, section))
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
        """Return the line after the last line with text of a section, which is added when missing.

        A template block that continues into the next section is no part of the section.
        """
        depths = self._depths()
        numbers = [
            number
            for number, name in self._line_sections()
            if name == section and self._lines[number].strip() and not depths[number + 1]
        ]
        if not numbers:
            blank = [""] if self._lines and self._lines[-1].strip() else []
            self._lines += [*blank, f"[{section}]"]
            return len(self._lines)
        return numbers[-1] + 1

    def _line_sections(self) -> t.Iterator[tuple[int, str]]:
        section = _ORPHANS
        for number, line in enumerate(self._lines):
            for match in filter(None, map(_SECTION.match, _parts(line))):
                section = match["name"]
            yield number, section

    def _depths(self) -> list[int]:
        """Return the number of open template blocks at the start of each line and at the end of the text."""
        changes = [0] * (len(self._lines) + 1)
        text = str(self)
        for match in _BLOCK.finditer(text):
            if match["keyword"]:
                changes[text.count("\n", 0, match.start()) + 1] += -1 if match["end"] else 1
        return list(itertools.accumulate(changes))

    def _reject_conditional(self, section: str, option: str, is_affected: t.Callable[[str], bool]) -> None:
        """Raise an error if a template statement decides about an affected line of a section."""
        depths = self._depths()
        for number, name in self._line_sections():
            line = self._lines[number]
            if name == section and (depths[number] or _is_statement(line)) and any(map(is_affected, _parts(line))):
                raise ConditionalOptionError(
                    f"Cannot set option {option!r} of section [{section}]: line {number + 1} of {self._title} is "
                    "inside a template statement, such as {% if %}. Move the option and its section out of it."
                )


def _is_statement(line: str) -> bool:
    return line.lstrip().startswith("{%")


def _parts(line: str) -> list[str]:
    """Return the texts between the template statements of a line that begins with a statement."""
    return _STATEMENT.split(line) if _is_statement(line) else [line]


def _matches(pattern: re.Pattern[str], part: str, name: str) -> bool:
    match = pattern.match(part)
    return bool(match) and match["name"] == name


def merge(text: str, settings: t.Sequence[t.Mapping[str, t.Any]], inherited: t.Sequence[str] = ()) -> str:
    """Return the text of an INI file with settings added.

    ``inherited`` has the texts of files that the file overrides, the strongest last. A value in them counts, because
    a new list in this file would hide it. Raise ValueError for a setting without a rule, and ConditionalOptionError for
    an option that depends on a template statement.
    """
    ini, weaker = IniText(text), [IniText(one, "an overridden file") for one in inherited]
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
