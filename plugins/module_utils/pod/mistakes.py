# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in pod.yml and machines.csv: errors with file and line, collected so that one run shows all of them."""

from __future__ import annotations

import contextlib
import difflib
import re
import typing as t

from ..natural_order import natural
from ..text_syntax import unusual_space

_MAX_SHOWN = 50  # maximum number of mistakes in one message
_MAX_NAMED = 20  # maximum number of names in a message
_MAX_COMPARED = 100_000  # number of known names, in all messages of one run, after which names are not compared

_SEPARATOR = re.compile(r"\s*(?:-|\.\.+|:)\s*")  # of the ends of a range
_DIGITS = "0123456789"
_END = r"(?:%s)?[0-9][0-9./]*"  # of a range, after the letters of its begin or without them


class PodError(Exception):
    """Raised for a mistake in pod.yml or machines.csv.

    ``line`` counts from 1 and is None for the whole file. ``column`` counts from 1 and is None for a row of a table.
    """

    error_code = "OPU300"

    def __init__(self, file: str, line: int | None, message: str) -> None:
        self.place = file if line is None else "%s, line %d" % (file, line)
        super().__init__("%s: %s" % (self.place, message))
        self.file = file
        self.line = line
        self.message = message
        self.column: int | None = getattr(line, "column", None)
        self.mistakes: tuple[PodError, ...] = (self,)

    def unless(self, doubt: bool) -> PodError:
        """Return the mistake, or a ConsequenceError if it may follow from another mistake."""
        return ConsequenceError(self.file, self.line, self.message) if doubt else self


class SeveralPodErrors(PodError):
    """Raised for several mistakes: those in ``mistakes``, by file and line."""

    error_code = PodError.error_code

    def __init__(self, mistakes: t.Iterable[PodError]) -> None:
        """``mistakes`` are at least two."""
        ordered = sorted(mistakes, key=lambda each: (each.file, each.line or 0))
        super().__init__(ordered[0].file, ordered[0].line, ordered[0].message)
        self.mistakes = tuple(ordered)
        lines = ["%d mistakes:" % len(ordered), *map(str, ordered[:_MAX_SHOWN])]
        if len(ordered) > _MAX_SHOWN:
            lines.append("… and %d more" % (len(ordered) - _MAX_SHOWN))
        self.args = ("\n".join(lines),)


class ConsequenceError(PodError):
    """Raised for an object that refers to one with a mistake. It is not reported: the mistake is."""

    error_code = PodError.error_code


class Mistakes:
    """Collector of mistakes."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int | None, int | None, str], PodError] = {}
        self._compared = 0

    def __len__(self) -> int:
        """Return the number of mistakes."""
        return len(self._found)

    @contextlib.contextmanager
    def collect(self) -> t.Iterator[None]:
        """Record the mistakes of a block of code instead of raising them. The rest of the block is skipped."""
        try:
            yield
        except PodError as error:
            self.add(error)

    def add(self, error: PodError) -> None:
        """Record a mistake, or several, each once: aliases in YAML repeat a mapping. Consequences are ignored."""
        if isinstance(error, ConsequenceError):
            return
        for each in error.mistakes:
            self._found.setdefault((each.file, each.line, each.column, each.message), each)

    def may_compare(self, count: int) -> bool:
        """Return whether to search the known names, ``count``, for one that is similar to an unknown name.

        Files with thousands of wrong names would otherwise take a minute, because every name is compared with all.
        """
        allowed = self._compared < _MAX_COMPARED
        if allowed:
            self._compared += count
        return allowed

    def check(self) -> None:
        """Raise PodError with all recorded mistakes, if any."""
        found = list(self._found.values())
        if len(found) == 1:
            raise found[0]
        if found:
            raise SeveralPodErrors(found)


class LeftOut:
    """Parts of a POD that are left out because of mistakes. Other messages may follow from their absence."""

    KINDS = frozenset(("rack", "machine", "server", "switch", "PDU"))

    def __init__(self) -> None:
        self.names: set[str] = set()  # devices
        self.unnamed: set[str] = set()  # kinds of racks and devices of which a name is unknown
        self.vlans: set[str] = set()  # networks without a valid VLAN
        self.subnets: set[str] = set()  # networks without a valid subnet
        self.numbers: set[str] = set()  # racks without a valid number
        self.machines: set[str] = set()  # racks without some of their machines
        self.switches: set[str] = set()  # racks without some of their switches
        self.servers = False  # whether a server, or its roles or addresses, is left out

    def explains(self, name: str, *kinds: str) -> bool:
        """Return whether a name may be that of a rack or device of these kinds that is left out."""
        return name in self.names or not self.unnamed.isdisjoint(kinds)


def similar(name: str, known: t.Iterable[str]) -> str | None:
    """Return the most similar known name, in upper or lower case, or None when none is similar."""
    plain = {_plain(each): each for each in known}
    near = difflib.get_close_matches(_plain(name), plain, n=1)
    return plain[near[0]] if near else None


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _range(name: str, names: list[str], full_names: t.Callable[[str], t.Sequence[str]]) -> list[str] | None:
    """Return the names of a range such as ``ipum01-ipum12``, none if they are many or unknown; None for another text.

    ``names`` are the known ones in natural order. The end of the range may be its number only.
    """
    for separator in _SEPARATOR.finditer(name):
        first, last = name[: separator.start()], name[separator.end() :]
        prefix = first.rstrip(_DIGITS)
        if prefix == first or not any(each in names for each in (first, *full_names(first))):
            continue
        ends = [each for each in (last, prefix + last) if each in names]
        if ends and first in names:
            found = names[names.index(first) : names.index(ends[0]) + 1]
            listed = [each for each in found if each.rstrip(_DIGITS) == prefix]
            return listed if 1 < len(listed) <= _MAX_NAMED else []
        letters = re.escape(first.rstrip(_DIGITS + "./"))
        if re.fullmatch(_END % letters, last, re.IGNORECASE):
            return []
    return None


def unknown(
    kind: str,
    name: str,
    known: t.Collection[str],
    mistakes: Mistakes | None = None,
    full_names: t.Callable[[str], t.Sequence[str]] = lambda _name: (),
) -> str:
    """Return the message for an unknown name, with the most similar known name.

    ``mistakes`` limits the comparisons of names in all messages together. After that, messages have no similar name.
    ``full_names`` returns the possible full names of a short one.
    """
    if mistakes is not None and not mistakes.may_compare(len(known)):
        return "unknown %s '%s': use one of the %d known names" % (kind, name, len(known))
    names = sorted(known, key=natural)
    if space := unusual_space(name):
        return "unknown %s '%s': it contains %s" % (kind, name, space)
    found = _range(name, names, full_names)
    if found is not None:
        listed = ": " + ", ".join(found) if found else ""
        return "unknown %s '%s': ranges are not expanded: list each name%s" % (kind, name, listed)
    near = similar(name, names)
    if near:
        return "unknown %s '%s': did you mean '%s'?" % (kind, name, near)
    more = " and %d more" % (len(names) - _MAX_NAMED) if len(names) > _MAX_NAMED else ""
    listed = "known are %s%s" % (", ".join(names[:_MAX_NAMED]), more) if names else "there are none"
    return "unknown %s '%s': %s" % (kind, name, listed)
