# SPDX-License-Identifier: GPL-3.0-or-later
"""What the rules of all kinds share: error codes, the caller's context, checks of ids, hosts and lists."""

from __future__ import annotations

import enum
import ipaddress
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from openipu.vipu.model import Kind

# Bounds on what one request may ask. An IPU-POD1024 has 256 IPU-Machines.
MAX_AGENTS_PER_CLUSTER = 1024
MAX_ILDS_PER_CLUSTER = 64
MAX_ALLOCATIONS_PER_USER = 1024
MAX_BATCH_ITEMS = 50_000

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,62}")
_DNS_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*")
_MAX_HOST = 253


class Code(enum.IntEnum):
    """Why something was refused; the numbers are those of gRPC."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9


class RuleError(Exception):
    """A refusal: ``code``, and one ``sentence`` that names object, place and remedy.

    ``needs`` is the object that is missing, when that is why.
    """

    def __init__(self, code: Code, sentence: str, needs: tuple[Kind, str] | None = None) -> None:
        """See the class."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.needs = needs


class Refused(Exception):
    """A refusal inside the rules: the reason alone, without 'Cannot … :' before and full stop after it."""

    def __init__(self, code: Code, reason: str, needs: tuple[Kind, str] | None = None) -> None:
        """See the class."""
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.needs = needs


@dataclass(frozen=True, slots=True)
class Context:
    """What the rules have to know beside the records.

    ``unavailable``: agents that are Down; the controller never chooses them for a partition.
    ``allowed``: the allocations that the caller may touch, None for all. To such a caller, other
    allocations and their partitions do not exist (NOT_FOUND, so that nothing about them leaks), and
    everything that is not a partition is PERMISSION_DENIED.
    ``under_test``: the cluster that is tested now; nothing is placed in it, and it stays as it is.
    ``admin_follows``: what else is done in the same breath leaves an administrator in any case.
    """

    unavailable: frozenset[str] = frozenset()
    allowed: frozenset[str] | None = None
    max_retries: int = 3
    admin_follows: bool = False
    under_test: str = ""

    def may_use(self, allocation: str) -> bool:
        """Whether the caller may touch partitions of this allocation."""
        return self.allowed is None or allocation in self.allowed


def shown(id: str) -> str:
    """An id as sentences quote it: bounded and printable, whatever somebody sent."""
    return repr(id) if len(id) <= 63 else repr(id[:63]) + "…"


def listing(ids: Iterable[str], most: int = 3) -> str:
    """Some ids for a sentence: a few in order, then how many more there are."""
    names = sorted(ids)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name) for name in names[:most]) + more


def invalid(reason: str) -> Refused:
    """The refusal of a request that is wrong in itself."""
    return Refused(Code.INVALID_ARGUMENT, reason)


def missing(kind: Kind, id: str) -> Refused:
    """The refusal of a reference to something that is not there."""
    return Refused(Code.NOT_FOUND, f"{kind} {shown(id)} does not exist", needs=(kind, id))


def not_there(kind: Kind, id: str, context: Context) -> Refused:
    """The same for something that a caller names who may see a part only: hidden or absent is one to it."""
    if context.allowed is None:
        return missing(kind, id)
    return Refused(Code.NOT_FOUND, f"{kind} {shown(id)} does not exist, or is not yours to use")


def in_the_way(kind: Kind, ids: Collection[str], does: str, do: str) -> Refused:
    """The refusal because of objects that have to go first; ``does`` or ``do`` says what they do."""
    if len(ids) == 1:
        return Refused(Code.FAILED_PRECONDITION, f"{kind} {listing(ids)} {does}; remove it first")
    return Refused(Code.FAILED_PRECONDITION, f"{kind}s {listing(ids)} {do}; remove them first")


def check_not_tested(cluster: str, context: Context) -> None:
    """Refuse what may not happen to a cluster while it is tested."""
    if cluster and cluster == context.under_test:
        raise Refused(
            Code.FAILED_PRECONDITION,
            f"a test of cluster {shown(cluster)} is in progress; wait until it is over, or stop it",
        )


def check_id(kind: Kind, id: str) -> None:
    """Refuse an id that is no name of an object (and so none that means something in a path)."""
    if not _ID.fullmatch(id):
        raise invalid(
            f"the id of {a_kind(kind)} is 1 to 63 letters, digits, '.', '_' or '-', "
            "and starts with a letter, a digit or '_'"
        )


def check_host(host: str) -> None:
    """Refuse a host that is neither an IP address nor a DNS name (a URL, a name with a port, …)."""
    if ":" in host and len(host) <= _MAX_HOST:
        try:
            plain = str(ipaddress.IPv6Address(host))
        except ValueError:
            plain = ""
        if plain and "%" not in plain:
            if plain != host.lower():
                raise invalid(f"write the IPv6 address {shown(host)} as {plain!r}")
            return
    elif len(host) <= _MAX_HOST and _DNS_NAME.fullmatch(host):
        if not host.rpartition(".")[2].isdigit():  # a name; no top-level domain is a number
            return
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            pass
        else:
            return
    raise invalid(f"the host {shown(host)} is neither an IP address nor a DNS name (give the port apart from it)")


def check_distinct(what: str, ids: Sequence[str]) -> None:
    """Refuse a list that names something twice."""
    if len(set(ids)) == len(ids):
        return
    seen: dict[str, int] = {}
    for index, id in enumerate(ids):
        if id in seen:
            raise invalid(f"{what} {shown(id)} is listed twice, at {seen[id]} and {index} (counted from 0)")
        seen[id] = index


def is_power_of_two(number: int) -> bool:
    """Whether it is 1, 2, 4, 8, …"""
    return number > 0 and number & (number - 1) == 0


def a_kind(kind: Kind) -> str:
    """The name of a kind with its article."""
    return f"an {kind}" if kind in (Kind.AGENT, Kind.ALLOCATION) else f"a {kind}"
