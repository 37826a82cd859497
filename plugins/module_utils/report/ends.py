# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How ports and cables are named, in the results of tests and everywhere in the report. Pure."""

from __future__ import annotations

import typing as t


class End(t.NamedTuple):
    """A chassis port, which is one end of a cable."""

    agent: str
    kind: str
    port: int  # as printed on the chassis

    def __str__(self) -> str:
        """For sentences."""
        return "%s %s port %d" % self


Pair = tuple[End, End]


def end(port: t.Mapping[str, t.Any]) -> End:
    """A port of a result."""
    return End(port["agent"], port["kind"], port["port"])


def pair(one: End, other: End) -> Pair:
    """A cable by the ports where it belongs, in whatever order they are given."""
    return (one, other) if one < other else (other, one)


def cable(failure: t.Mapping[str, t.Any]) -> Pair | None:
    """The cable that a failure is about; None when it is about something else."""
    return pair(end(failure["a"]), end(failure["b"])) if failure["a"] and failure["b"] else None
