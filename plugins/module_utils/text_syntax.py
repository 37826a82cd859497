# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Search for the place and the remedy of a mistake in the syntax of a YAML file. No I/O.

A parser reports where it cannot continue. The mistake is often some lines above, such as a quotation mark without its
partner or a list item without its dash.
"""

from __future__ import annotations

import re
import typing as t
import unicodedata

_MAPPING_VALUES = ". Check the indentation, and quote a value that contains ': '"
_ITEMS = ". Write '- ' before each item of a list, and indent all items equally"
_KEYS = ". Indent all keys of a mapping equally, and write '- ' before each item of a list"
_COMMA = ". Write a comma between values, and quote a value with special characters"
_TABS = ". Indent with spaces, not with tabs"
# What to do about the most frequent problems that PyYAML and libyaml report.
_HINTS = {
    "mapping values are not allowed here": _MAPPING_VALUES,
    "mapping values are not allowed in this context": _MAPPING_VALUES,
    "could not find expected ':'": ". Write a key, a colon and a space, or '- ' before an item of a list",
    "did not find expected key": _KEYS,
    "expected <block end>, but found '<block mapping start>'": _KEYS,
    "did not find expected '-' indicator": _ITEMS,
    "found character '\\t' that cannot start any token": _TABS,
    "found unexpected ':'": ". Write a space and a value after it, or quote the text",
    "found undefined alias": ". Define it above with '&', or quote the value",
    "did not find expected <document start>": ". Start the file with 'plugin: openipu.pod.pod'",
    "found a tab character that violates indentation": _TABS,
}
_NO_DASH = "is not YAML: this item of a list has no dash: write '- ' before it"
_UNREADABLE = "that cannot start any token"
_TEMPLATES = ("{{", "{%")
TEMPLATE = "is not YAML: templates are not rendered here: write the value"  # of pod.yml; variables have templates
_IN_QUOTES = re.compile(r"\"[^\"]*\"|'[^']*'")
_BRACKET = re.compile(r"[\[\]{}]")
_NOT_CLOSED = "is not YAML: this '%s' is not closed: add '%s'"
_NOT_CLOSED_BEFORE_ITEMS = "is not YAML: this '%s' is not closed: remove it, because items with '- ' follow"
_BEFORE_ITEMS = "is not YAML: items with '- ' follow this '%s': remove it and its '%s', or the dashes"
_NO_VALUE = "is not YAML: this ',' follows no value: write one, or remove the comma"
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"  # that look like a space
_UNUSUAL_SPACE = re.compile("[%s]" % _SPACES)
# Characters in the place of a space, of the dash of a list item, and of a colon or comma of Chinese keyboards.
_LOOKALIKE = re.compile(
    "(?:^ *|[:,{\\[-] *)(?P<space>[%s]+)|^ *(?P<dash>[\u2010-\u2015\u2022\u2212]) |(?P<colon>\uff1a)|(?P<comma>\uff0c)"
    % _SPACES
)
_PLAIN = {"space": " ", "dash": "-", "colon": ":", "comma": ","}
_MAX_TRIED = 20  # maximum number of lookalike characters above a problem that are replaced to find the wrong one
_CONFLICT = ("<<<<<<< ", "=======", ">>>>>>> ")  # lines of Git
_COMMENT = re.compile(r"(?:^|\s)#.*")
_DASH_WITHOUT_SPACE = re.compile(r"\s*-[\w{\[\"']")
_FLOW = {"while parsing a flow mapping": ("{", "}"), "while parsing a flow sequence": ("[", "]")}
_FLOW_NODE = "while parsing a flow node"  # the parser does not name the bracket
_OPENING = dict(_FLOW.values())
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}
_QUOTED = "while scanning a quoted scalar"
_SIMPLE_KEY = "while scanning a simple key"


class Position(t.NamedTuple):
    """Line and column of a text, both from 1."""

    line: int
    column: int

    @classmethod
    def of(cls, mark: t.Any) -> Position:
        """Return the position of a mark of PyYAML, which counts from 0."""
        return cls(mark.line + 1, mark.column + 1)

    @classmethod
    def first(cls, text: str, character: str) -> Position:
        """Return the position of the first occurrence of a character."""
        before = text.partition(character)[0]
        return cls(before.count("\n") + 1, len(before) - before.rfind("\n"))


class Problem(t.NamedTuple):
    """Error of a parser: where it cannot continue, and where it began to read the part with the error."""

    text: str
    place: Position
    context: str
    begin: Position | None

    @classmethod
    def of(cls, error: t.Any) -> Problem | None:
        """Return the problem of an error of PyYAML, None without a place."""
        mark, begin = error.problem_mark or error.context_mark, error.context_mark
        if not mark:
            return None
        return cls(error.problem or "", Position.of(mark), error.context or "", begin and Position.of(begin))


def unusual_space(text: str) -> str | None:
    """Return the name and the remedy of the first character that only looks like a space; None without one."""
    found = _UNUSUAL_SPACE.search(text)
    if not found:
        return None
    return _lookalike(found[0], "space")


def _lookalike(character: str, kind: str) -> str:
    name, plain = unicodedata.name(character).lower(), "a space" if kind == "space" else "'%s'" % _PLAIN[kind]
    return "a character that looks like %s (%s, U+%04X): replace it with %s" % (plain, name, ord(character), plain)


def explain(
    content: str, problem: Problem, quoted: Position | None, fails_at: t.Callable[[str], Position | None]
) -> tuple[Position, str]:
    """Return the place and the message of a problem in a YAML text.

    ``quoted`` is the begin of a text in quotes that spans several lines and ends in the line of the problem.
    ``fails_at`` returns where the parser cannot continue in a text, None for a valid one.
    """
    return _Explanation(content, problem, fails_at).found(quoted)


class _Explanation:
    """Search for the mistake behind a problem, from certain causes to likely ones."""

    def __init__(self, content: str, problem: Problem, fails_at: t.Callable[[str], Position | None]) -> None:
        self._text = content.splitlines(keepends=True)
        self._lines = [_COMMENT.sub("", line) for line in content.splitlines()]
        self._problem = problem
        self._fails_at = fails_at

    def found(self, quoted: Position | None) -> tuple[Position, str]:
        place, begin = self._problem.place, self._problem.begin
        if separator := self._separator():
            return separator
        unquoted = _IN_QUOTES.sub("", self._line(place.line))
        if any(start in unquoted for start in _TEMPLATES):
            return place, TEMPLATE
        if self._problem.context == _QUOTED and begin:
            return begin, "is not YAML: a text in quotes is not closed: add the closing quotation mark"
        if quoted:
            message = "is not YAML: this text in quotes ends in line %d: add the closing quotation mark in its line"
            return quoted, message % place.line
        return self._bracket() or self._dash() or self._parsed()

    def _separator(self) -> tuple[Position, str] | None:
        """Return the first line of a conflict, or the character that only looks like a separator of YAML.

        Such characters are valid in texts. Those above the problem are replaced, from the last one on, until the parser
        reads past the problem.
        """
        lines = list(enumerate(self._lines[: self._problem.place.line], 1))
        for number, line in lines:
            if line.startswith(_CONFLICT):
                return Position(number, 1), "is not YAML: this is a conflict marker of Git: resolve the conflict"
        found = [(number, each) for number, line in lines for each in _LOOKALIKE.finditer(line)]
        text = list(self._text)
        for number, each in reversed(found[-_MAX_TRIED:]):
            kind = each.lastgroup or ""
            start, end = each.span(kind)
            line = text[number - 1]
            text[number - 1] = line[:start] + _PLAIN[kind] * (end - start) + line[end:]
            if self._end(text) > self._problem.place:
                return Position(number, start + 1), "is not YAML: this is %s" % _lookalike(each[kind][0], kind)
        return None

    def _bracket(self) -> tuple[Position, str] | None:
        """Return an opening bracket without the closing one, or a closing one without the opening one."""
        place, begin = self._problem.place, self._problem.begin
        found = self._line(place.line)[place.column - 1 : place.column]
        if self._problem.context == _FLOW_NODE:
            return self._in_brackets(found)
        if self._problem.context not in _FLOW or not begin:
            opening = _CLOSING.get(found)
            return (place, "is not YAML: this '%s' has no '%s': remove it" % (found, opening)) if opening else None
        opening, closing = _FLOW[self._problem.context]
        further = max(place, self._end(self._with(",")))
        if found in _CLOSING or begin in self._open() or self._end(self._with(closing)) > further:
            return begin, _NOT_CLOSED % (opening, closing)
        return None

    def _in_brackets(self, found: str) -> tuple[Position, str] | None:
        """Return the mistake behind a missing value in brackets. ``found`` is the character in its place."""
        place, opened = self._problem.place, self._open(self._problem.place)
        if not opened:
            return None
        begin = opened[-1]
        opening = self._line(begin.line)[begin.column - 1]
        unclosed = begin in self._open()
        if found == "-" and not unclosed:
            return begin, _BEFORE_ITEMS % (opening, _OPENING[opening])
        if found == "-" and not self._between(begin, place):
            return begin, _NOT_CLOSED_BEFORE_ITEMS % opening
        if unclosed:
            return begin, _NOT_CLOSED % (opening, _OPENING[opening])
        return (place, _NO_VALUE) if found == "," else None

    def _between(self, begin: Position, end: Position) -> str:
        """Return the content between the character at a place and a later place."""
        lines = [*self._lines[begin.line - 1 : end.line - 1], self._line(end.line)[: end.column - 1]]
        return " ".join(lines)[begin.column :].strip()

    def _open(self, end: Position | None = None) -> list[Position]:
        """Return the brackets that are not closed up to a place, by default up to the end of the text."""
        found: list[Position] = []
        for number, line in enumerate(self._lines, 1):
            unquoted = _IN_QUOTES.sub(lambda quoted: " " * len(quoted[0]), line)
            for bracket in _BRACKET.finditer(unquoted):
                position = Position(number, bracket.start() + 1)
                if end is not None and position >= end:
                    return found
                if bracket[0] in _CLOSING:
                    del found[-1:]
                elif found or not unquoted[: bracket.start()].rstrip(" ")[-1:].isalnum():  # else part of a text
                    found.append(position)
        return found

    def _with(self, separator: str) -> list[str]:
        """Return the lines with a separator at the end of the one above the problem."""
        lines, number = list(self._text), self._above(self._problem.place.line)
        end = len(self._line(number))
        lines[number - 1] = lines[number - 1][:end] + separator + lines[number - 1][end:]
        return lines

    def _end(self, lines: t.Sequence[str]) -> Position:
        """Return where the parser cannot continue in these lines, a place behind them if their syntax is valid."""
        return self._fails_at("".join(lines)) or Position(len(lines) + 2, 1)

    def _dash(self) -> tuple[Position, str] | None:
        """Return the line without the dash of a list item, or without the space after it."""
        number, begin = self._problem.place.line, self._problem.begin
        if self._problem.context == _SIMPLE_KEY and begin and self._line(begin.line).lstrip().startswith("{"):
            return begin, _NO_DASH
        above = self._above(number)
        for each in (above, number):
            if _DASH_WITHOUT_SPACE.match(self._line(each)):
                return self._start(each), "is not YAML: write a space after '-'"
        if self._is_item(above) and self._line(number).lstrip().startswith("{"):
            return self._start(number), _NO_DASH
        if not above or self._is_item(above):
            return None
        deeper = self._indentation(number) - self._indentation(above)
        first = self._line(self._above(above)).endswith(":") and ": " in self._line(above)
        if self._is_item(number) and deeper == 0:
            return self._start(above), _NO_DASH
        continued = ": " not in self._line(number)[: self._problem.place.column - 1]  # the value of the line above
        if first and continued and deeper > 0 and self._problem.text.startswith("mapping values"):
            message = (
                "is not YAML: line %d has a larger indentation than this line: write '- ' before the first key of a "
                "list item, or indent the keys of a mapping equally"
            )
            return self._start(above), message % number
        return None

    def _parsed(self) -> tuple[Position, str]:
        """Return the place that the parser reports, with the remedy of a known problem."""
        place, text = self._problem.place, self._problem.text
        hint = _HINTS.get(text, _COMMA if self._problem.context in _FLOW else "")
        if self._problem.context == _SIMPLE_KEY and self._problem.begin:
            place = self._problem.begin
        if _UNREADABLE in text and not hint:
            tab = self._line(place.line)[place.column - 1 : place.column] == "\t"
            hint = _TABS if tab else ". Quote the value"
        return place, "is not YAML: %s%s" % (text, hint)

    def _line(self, number: int) -> str:
        """Return a line without comment and without spaces at its end; empty outside of the file."""
        return self._lines[number - 1].rstrip() if 0 < number <= len(self._lines) else ""

    def _above(self, number: int) -> int:
        """Return the number of the next line above with content, 0 for none."""
        return next((each for each in range(number - 1, 0, -1) if self._line(each).strip()), 0)

    def _indentation(self, number: int) -> int:
        line = self._line(number)
        return len(line) - len(line.lstrip())

    def _is_item(self, number: int) -> bool:
        return self._line(number).lstrip().startswith("- ")

    def _start(self, number: int) -> Position:
        return Position(number, self._indentation(number) + 1)
