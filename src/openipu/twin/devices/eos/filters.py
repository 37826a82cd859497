# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters after a command: `show running-config | section interface | include mtu`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.config.tree import section

_PATTERN = frozenset({"begin", "exclude", "grep", "include", "section"})
_OTHER = frozenset({"json", "no-more"})
# Filters of EOS that the twin does not have: they write files, or their result is not known.
_REJECTED = frozenset({"append", "nz", "redirect", "tee"})
_BAR = re.compile(r"(\s\|\s*)")
# Parts of regular expressions of grep that mean something else in Python.
_FOREIGN = re.compile(r"\[\[[:.=]|\\[<>`']")
# An escaped backslash, and characters that only extended regular expressions have, with and without a backslash.
_EXTENDED = re.compile(r"(\\\\)|\\([+?|(){}])|([+?|(){}])")


@dataclass(frozen=True)
class Filter:
    """One filter: its name, its pattern, and the options of grep."""

    name: str
    pattern: str = ""
    options: frozenset[str] = frozenset()

    def apply(self, text: str) -> str:
        """Return the lines of a text that pass.

        Raises:
            CliError: when the pattern is not a regular expression.
        """
        if self.name == "no-more":
            return text
        lines = text.splitlines()
        try:
            matcher = re.compile(self.pattern, re.IGNORECASE if "i" in self.options else 0)
            if self.name == "section":
                return "\n".join(section(lines, self.pattern))
            fits = [matcher.search(line) is not None for line in lines]
        except re.error as error:
            raise CliError(1000, f"Invalid regular expression {self.pattern!r}: {error}") from None
        if self.name == "begin":
            return "\n".join(lines[fits.index(True) :]) if True in fits else ""
        inverse = self.name == "exclude" or "v" in self.options
        return "\n".join(line for line, fit in zip(lines, fits, strict=True) if fit != inverse)


def split(command: str, complete: bool = False) -> tuple[str, list[Filter]]:
    """Return a command without its filters, and these.

    Another word after a bar is part of the pattern before it: modules of `arista.eos` use such patterns. Without a
    pattern before it, the bar stays in the command, which no syntax then matches.

    Args:
        command: command line.
        complete: whether names of filters may be abbreviated.

    Raises:
        CliError: when a filter has no pattern, or a form that the twin does not have.
    """
    head, *rest = _BAR.split(command.strip())
    found: list[tuple[int, str, str]] = []  # index of the word, name and argument
    words = len(head.split())
    for bar, part in zip(rest[::2], rest[1::2], strict=True):
        first = part.split()[0] if part.strip() else ""
        name = _name(first, complete)
        if name:
            found.append((words + 1, name, part[len(first) :].strip()))
        elif found and found[-1][1] in _PATTERN:
            at, name, pattern = found[-1]
            found[-1] = (at, name, pattern + bar + part)
        else:
            head += bar + part
        words += 1 + len(part.split())
    return head, [_filter(*each) for each in found]


def _name(word: str, complete: bool) -> str:
    names = _PATTERN | _OTHER | _REJECTED
    if word in names or not (word and complete):
        return word if word in names else ""
    fits = [name for name in names if name.startswith(word)]
    return fits[0] if len(fits) == 1 else ""


def _filter(at: int, name: str, argument: str) -> Filter:
    if name in _REJECTED or (argument if name in _OTHER else argument[:1] in {'"', "'"} and name != "grep"):
        raise CliError(1002, f"Invalid input (at token {at}: '{name}')")
    if name in _PATTERN and not argument:
        raise CliError(1002, f"Incomplete command (at token {at}: '{name}')")
    return _grep(at, argument) if name == "grep" else Filter(name, argument)


def _grep(at: int, argument: str) -> Filter:
    """Return the filter for a command line of grep, which EOS runs in a shell: quotes, `-i`, `-v` and `-E`."""
    try:
        words = shlex.split(argument)
    except ValueError:
        words = []
    options = "".join(word[1:] for word in words if word.startswith("-"))
    patterns: Sequence[str] = [word for word in words if not word.startswith("-")]
    if len(patterns) != 1 or set(options) - set("ivE") or _FOREIGN.search(patterns[0]):
        raise CliError(1002, f"Invalid input (at token {at}: 'grep')")
    pattern = patterns[0]
    if "E" not in options:  # in basic regular expressions, these characters are special only after a backslash
        pattern = _EXTENDED.sub(lambda found: found[1] or found[2] or "\\" + found[3], pattern)
    return Filter("grep", pattern, frozenset(options))
