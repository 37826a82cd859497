# SPDX-License-Identifier: GPL-3.0-or-later
"""How EOS reads a command: words against a declared syntax, and what it answers when they do not fit.

A syntax is a line of words. `shutdown` is itself, `active|passive|on` one of these words, `<68-9214>` a
number, `[...]` may be left out, and capitals are kinds of value: `WORD`, `LINE` (the rest), `NUM`, `VLAN`,
`VLANS`, `TIME` (HH:MM:SS), `IP`, `PREFIX`, `MAC`, `INTF`, `INTFS`. A `*` after a value says that it is part
of what the command is about (`ntp server WORD*`), so that two of them are two settings.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from openipu.twin.eos.ports import Ports, vlan_set, vlan_text

_NUMBER = re.compile(r"<(\d+)-(\d+)>")
_MAC = re.compile(r"[0-9a-f]{4}(\.[0-9a-f]{4}){2}|[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)


class CliError(Exception):
    """A command that is not carried out.

    `code` is eAPI's: 1000 could not be run, 1002 no such command, 1003 has no JSON form, 1005 not allowed.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True)
class Element:
    """One word of a syntax, or an optional part of it."""

    text: str = ""
    key: bool = False
    optional: tuple[Element, ...] = ()

    @cached_property
    def literal(self) -> bool:
        """Whether the word stands for itself."""
        return bool(self.text) and "|" not in self.text and not self.text.isupper() and self.text[0] != "<"


@dataclass
class Reading:
    """How the words of one command are read: with which ports, and how far they fitted."""

    ports: Ports
    words: Sequence[str]
    complete: bool = False
    furthest: int = -1
    incomplete: bool = False
    prefix: bool = False

    def fell(self, at: int, prefix: bool = False) -> None:
        """Remember the furthest word at which a syntax did not fit."""
        if at > self.furthest:
            self.furthest, self.prefix = at, prefix
            self.incomplete = at >= len(self.words)
        elif at == self.furthest and prefix:
            self.prefix = True

    def error(self) -> CliError:
        """What EOS says when no syntax fits."""
        at = max(self.furthest, 0)
        if self.incomplete and self.words:
            at = len(self.words) - 1
            return CliError(1002, f"Incomplete command (at token {at}: '{self.words[at]}')")
        word = self.words[at] if at < len(self.words) else ""
        return CliError(1002, f"{'Incomplete token' if self.prefix else 'Invalid input'} (at token {at}: '{word}')")


@dataclass(frozen=True)
class Match:
    """A command that fits: its words in EOS's own form, its values, and which setting it is about."""

    words: tuple[str, ...]
    values: tuple[str, ...] = ()
    slot: tuple[str, ...] = ()
    end: int = 0

    @property
    def text(self) -> str:
        """The command as EOS writes it."""
        return " ".join(self.words)


@cache
def compiled(syntax: str) -> tuple[Element, ...]:
    """The elements of a syntax."""
    stack: list[list[Element]] = [[]]
    for token in syntax.replace("[", " [ ").replace("]", " ] ").split():
        if token == "[":  # noqa: S105
            stack.append([])
        elif token == "]":  # noqa: S105
            inner = tuple(stack.pop())
            stack[-1].append(Element(optional=inner))
        else:
            stack[-1].append(Element(token.removesuffix("*"), token.endswith("*")))
    return tuple(stack[0])


@cache
def removal(syntax: str, slot: str = "") -> tuple[Element, ...]:
    """The elements of the same syntax after `no`: what says which setting it is, and the rest at will."""
    elements = compiled(syntax)
    if slot:
        needed = len(slot.split()) - 1
    else:
        needed = max((n for n, element in enumerate(elements) if element.literal or element.key), default=0)
    rest: tuple[Element, ...] = ()
    for element in reversed(elements[needed + 1 :]):
        inner = element.optional or (element,)
        rest = (Element(optional=(*inner, *rest)),)
    return (*elements[: needed + 1], *rest)


def read(elements: Sequence[Element], reading: Reading, at: int = 0, whole: bool = True) -> Match | None:
    """The command as this syntax reads it, from the word `at` on, or None; `whole` wants every word used."""
    # Nearly all syntaxes that a command is held against begin with another word.
    if at < len(reading.words) and elements[0].literal and not elements[0].text.startswith(reading.words[at]):
        reading.fell(at)
        return None
    for match in _read(elements, reading, at, Match((), end=at)):
        if not whole or match.end == len(reading.words):
            return match
        reading.fell(match.end)
    return None


def _read(elements: Sequence[Element], reading: Reading, at: int, got: Match) -> Iterator[Match]:
    if not elements:
        yield Match(got.words, got.values, got.slot, at)
        return
    element, rest = elements[0], elements[1:]
    if element.optional:
        for match in _read(element.optional, reading, at, Match(got.words, got.values, got.slot)):
            # What is optional names no setting.
            yield from _read(rest, reading, match.end, Match(match.words, match.values, got.slot))
        yield from _read(rest, reading, at, got)
        return
    if at >= len(reading.words):
        reading.fell(at)
        return
    taken, word = _take(element, reading, at)
    if word is None:
        return
    slot = (*got.slot, word) if element.literal or element.key else got.slot
    values = got.values if element.literal else (*got.values, word)
    yield from _read(rest, reading, at + taken, Match((*got.words, word), values, slot))


def _take(element: Element, reading: Reading, at: int) -> tuple[int, str | None]:
    """How many words an element takes, and what it makes of them."""
    word, kind = reading.words[at], element.text
    if element.literal or "|" in kind:
        choices = kind.split("|")
        if word in choices:
            return 1, word
        fits = [choice for choice in choices if choice.startswith(word)]
        if reading.complete and len(fits) == 1:
            return 1, fits[0]
        reading.fell(at, prefix=bool(fits))
        return 0, None
    if kind == "LINE":
        return len(reading.words) - at, " ".join(reading.words[at:])
    if kind in {"INTF", "INTFS"} and at + 1 < len(reading.words) and word.isalpha() and reading.complete:
        with_number = _value(kind, word + reading.words[at + 1], reading)
        if with_number is not None:
            return 2, with_number
    value = _value(kind, word, reading)
    if value is None:
        reading.fell(at)
    return 1, value


def _value(kind: str, word: str, reading: Reading) -> str | None:
    try:
        return _check(kind, word, reading)
    except ValueError:
        return None


def _check(kind: str, word: str, reading: Reading) -> str:
    number = _NUMBER.fullmatch(kind)
    if number or kind == "VLAN":
        low, high = (int(number[1]), int(number[2])) if number else (1, 4094)
        if not word.isdigit() or not low <= int(word) <= high:
            raise ValueError(word)
        return str(int(word))
    match kind:
        case "WORD":
            return word
        case "NUM":
            return f"{float(word):g}"
        case "TIME":
            hours, minutes, seconds = word.split(":")
            if not (int(minutes) < 60 and int(seconds) < 60 and min(int(hours), int(minutes), int(seconds)) >= 0):
                raise ValueError(word)
            return word
        case "VLANS":
            return vlan_text(vlan_set(word))
        case "IP":
            return str(ipaddress.IPv4Address(word))
        case "PREFIX":
            interface = ipaddress.IPv4Interface(word)
            if "/" not in word:
                raise ValueError(word)
            return str(interface)
        case "MAC":
            if not _MAC.fullmatch(word):
                raise ValueError(word)
            digits = re.sub(r"[.:]", "", word.lower())
            return ".".join(digits[n : n + 4] for n in (0, 4, 8))
        case "INTF" | "INTFS":
            names = reading.ports.names(word, reading.complete)
            if kind == "INTF" and len(names) != 1:
                raise ValueError(word)
            return ",".join(names)
    raise ValueError(kind)
