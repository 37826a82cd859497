# SPDX-License-Identifier: GPL-3.0-or-later
"""Parser of EOS commands: matches words with a declared syntax and returns the errors of EOS.

A syntax is a line of words:

* `shutdown`: literal word
* `active|passive|on`: one of these words
* `<68-9214>`: number in a range
* `[...]`: optional part
* capitals: kinds of value: `WORD`, `LINE` (rest of the line), `NUM`, `VLAN`, `VLANS`, `TIME` (HH:MM:SS), `IP`,
  `PREFIX`, `MAC`, `INTF`, `INTFS`

A `*` after a value makes it part of the key of the setting. For example, two lines `ntp server WORD*` with
different values are two settings.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from openipu.twin.devices.eos.ports import Ports, vlan_set, vlan_text

_NUMBER = re.compile(r"<(\d+)-(\d+)>")
_MAC = re.compile(r"[0-9a-f]{4}(\.[0-9a-f]{4}){2}|[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)


class CliError(Exception):
    """Raised when a command is rejected.

    `code` is that of eAPI: 1000 could not be run, 1002 invalid command, 1003 no JSON form, 1005 not permitted.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True)
class Element:
    """One word of a syntax, or an optional part of it; `key` marks a part of the key of the setting."""

    text: str = ""
    key: bool = False
    optional: tuple[Element, ...] = ()

    @cached_property
    def literal(self) -> bool:
        """Return whether the element is a literal word."""
        return bool(self.text) and "|" not in self.text and not self.text.isupper() and self.text[0] != "<"


@dataclass
class ParseState:
    """Words of one command, and the furthest word at which a syntax did not match.

    Args:
        ports: ports of the switch, for names of interfaces.
        words: words of the command.
        complete: whether words may be abbreviated.
        furthest: index of the furthest word that did not match; -1 before the first mismatch.
        incomplete: whether the words ended there.
        prefix: whether the word there is the beginning of a valid word.
    """

    ports: Ports
    words: Sequence[str]
    complete: bool = False
    furthest: int = -1
    incomplete: bool = False
    prefix: bool = False

    def mismatch(self, at: int, prefix: bool = False) -> None:
        """Record the furthest word that did not match."""
        if at > self.furthest:
            self.furthest, self.prefix = at, prefix
            self.incomplete = at >= len(self.words)
        elif at == self.furthest and prefix:
            self.prefix = True

    def error(self) -> CliError:
        """Return the error of EOS for a command that matches no syntax."""
        at = max(self.furthest, 0)
        if self.incomplete and self.words:
            at = len(self.words) - 1
            return CliError(1002, f"Incomplete command (at token {at}: '{self.words[at]}')")
        word = self.words[at] if at < len(self.words) else ""
        return CliError(1002, f"{'Incomplete token' if self.prefix else 'Invalid input'} (at token {at}: '{word}')")


@dataclass(frozen=True)
class Match:
    """Parsed command: words in canonical form, values, and key of the setting (`slot`).

    `end` is the index after the last word that was used.
    """

    words: tuple[str, ...]
    values: tuple[str, ...] = ()
    slot: tuple[str, ...] = ()
    end: int = 0

    @property
    def text(self) -> str:
        """Command in canonical form."""
        return " ".join(self.words)


@cache
def compile_syntax(syntax: str) -> tuple[Element, ...]:
    """Return the elements of a syntax."""
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
def compile_removal(syntax: str, slot: str = "") -> tuple[Element, ...]:
    """Return the elements of a syntax after `no`: words that identify the setting, the others optional."""
    elements = compile_syntax(syntax)
    if slot:
        needed = len(slot.split()) - 1
    else:
        needed = max((n for n, element in enumerate(elements) if element.literal or element.key), default=0)
    rest: tuple[Element, ...] = ()
    for element in reversed(elements[needed + 1 :]):
        inner = element.optional or (element,)
        rest = (Element(optional=(*inner, *rest)),)
    return (*elements[: needed + 1], *rest)


def parse(elements: Sequence[Element], state: ParseState, at: int = 0) -> Match | None:
    """Match all words from index `at` on with a syntax; return None if they do not match."""
    # Fast path: nearly all syntaxes begin with another word.
    if at < len(state.words) and elements[0].literal and not elements[0].text.startswith(state.words[at]):
        state.mismatch(at)
        return None
    for match in _parse(elements, state, at, Match((), end=at)):
        if match.end == len(state.words):
            return match
        state.mismatch(match.end)
    return None


def _parse(elements: Sequence[Element], state: ParseState, at: int, got: Match) -> Iterator[Match]:
    if not elements:
        yield Match(got.words, got.values, got.slot, at)
        return
    element, rest = elements[0], elements[1:]
    if element.optional:
        for match in _parse(element.optional, state, at, Match(got.words, got.values, got.slot)):
            # Optional words are no part of the key.
            yield from _parse(rest, state, match.end, Match(match.words, match.values, got.slot))
        yield from _parse(rest, state, at, got)
        return
    if at >= len(state.words):
        state.mismatch(at)
        return
    taken, word = _take(element, state, at)
    if word is None:
        return
    slot = (*got.slot, word) if element.literal or element.key else got.slot
    values = got.values if element.literal else (*got.values, word)
    yield from _parse(rest, state, at + taken, Match((*got.words, word), values, slot))


def _take(element: Element, state: ParseState, at: int) -> tuple[int, str | None]:
    """Return the number of words that an element takes, and their canonical form or None."""
    word, kind = state.words[at], element.text
    if element.literal or "|" in kind:
        choices = kind.split("|")
        if word in choices:
            return 1, word
        fits = [choice for choice in choices if choice.startswith(word)]
        if state.complete and len(fits) == 1:
            return 1, fits[0]
        state.mismatch(at, prefix=bool(fits))
        return 0, None
    if kind == "LINE":
        return len(state.words) - at, " ".join(state.words[at:])
    # Names of interfaces may be short or have a space even where words must be complete: `Et1`, `Ethernet 1`.
    if kind in {"INTF", "INTFS"} and at + 1 < len(state.words) and word.replace("-", "").isalpha():
        name = _value(kind, word + state.words[at + 1], state)
        if name is not None:
            return 2, name
    value = _value(kind, word, state)
    if value is None:
        state.mismatch(at)
    return 1, value


def _value(kind: str, word: str, state: ParseState) -> str | None:
    try:
        return _canonical(kind, word, state)
    except ValueError:
        return None


def _canonical(kind: str, word: str, state: ParseState) -> str:
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
            names = state.ports.names(word)
            if kind == "INTF" and len(names) != 1:
                raise ValueError(word)
            return ",".join(names)
    raise ValueError(kind)
