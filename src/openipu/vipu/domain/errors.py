# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of the rules: codes and messages."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable

from openipu.vipu.domain.context import Context
from openipu.vipu.domain.model import Kind


class Code(enum.IntEnum):
    """Causes of a rule error, with the numbers of gRPC."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9


class RuleError(Exception):
    """Raised when the rules reject a request.

    ``message`` names the object, the cause and the remedy. ``needs`` is the missing object, if one is the cause.
    """

    def __init__(self, code: Code, message: str, needs: tuple[Kind, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.needs = needs

    @property
    def error_code(self) -> str:
        """Stable code for documentation, see ``openipu.shared.errors``."""
        return f"OPU{600 + self.code}"


class RuleViolation(Exception):
    """Raised inside the rules, where the request is not known. Callers convert it to a ``RuleError``.

    ``reason`` is the message without 'Cannot <verb> <object>: ' at its start and the full stop at its end.
    """

    def __init__(self, code: Code, reason: str, needs: tuple[Kind, str] | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.needs = needs


def quoted(id: str) -> str:
    """Return an id as messages quote it: bounded and printable, for any input."""
    return repr(id) if len(id) <= 63 else repr(id[:63]) + "…"


def listing(ids: Iterable[str], most: int = 3) -> str:
    """Return the first ``most`` ids in order, quoted, and the number of the others."""
    names = sorted(ids)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(quoted(name) for name in names[:most]) + more


def invalid(reason: str) -> RuleViolation:
    """Return the violation by an invalid request."""
    return RuleViolation(Code.INVALID_ARGUMENT, reason)


def missing(kind: Kind, id: str) -> RuleViolation:
    """Return the violation by a reference to a missing object."""
    return RuleViolation(Code.NOT_FOUND, f"{kind} {quoted(id)} does not exist", needs=(kind, id))


def missing_or_hidden(kind: Kind, id: str, context: Context) -> RuleViolation:
    """Return the violation by a missing object, the same for one that is hidden from the caller."""
    if context.administrator:
        return missing(kind, id)
    return RuleViolation(Code.NOT_FOUND, f"{kind} {quoted(id)} does not exist, or you may not use it. Check the id")


def blocked_by(kind: Kind, ids: Collection[str], does: str, do: str) -> RuleViolation:
    """Return the violation by dependent objects; ``does`` or ``do`` is the predicate for one or several."""
    if len(ids) == 1:
        return RuleViolation(Code.FAILED_PRECONDITION, f"{kind} {listing(ids)} {does}. Remove the {kind} first")
    return RuleViolation(Code.FAILED_PRECONDITION, f"{kind}s {listing(ids)} {do}. Remove the {kind}s first")


def with_article(kind: Kind) -> str:
    """Return the name of a kind with its article."""
    return f"an {kind}" if kind in (Kind.AGENT, Kind.ALLOCATION) else f"a {kind}"
