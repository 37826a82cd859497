# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of ids, hosts and lists that the rules of all kinds share."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from openipu.shared.vipu.object_rules import ID_RULE, is_valid_id
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleViolation, invalid, quoted, with_article
from openipu.vipu.domain.model import Kind

# Limits of one request. An IPU-POD1024 has 256 IPU-Machines.
MAX_AGENTS_PER_CLUSTER = 1024
MAX_ILDS_PER_CLUSTER = 64
MAX_ALLOCATIONS_PER_USER = 1024
MAX_BATCH_ITEMS = 50_000

_DNS_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*")
_OCTET = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = re.compile(rf"{_OCTET}(\.{_OCTET}){{3}}")  # the rule of `ipaddress`, at a tenth of its time
_MAX_HOST = 253


def check_not_tested(cluster: str, context: Context) -> None:
    """Raise RuleViolation while the cluster is under test."""
    if cluster and cluster == context.cluster_under_test:
        raise RuleViolation(
            Code.FAILED_PRECONDITION,
            f"a test of cluster {quoted(cluster)} is in progress. Wait for its end, or stop it",
        )


def check_id(kind: Kind, id: str) -> None:
    """Raise RuleViolation for an invalid id, which includes ids with a meaning in file paths."""
    if not is_valid_id(id):
        raise invalid(f"the id of {with_article(kind)} must have {ID_RULE}")


def check_host(host: str) -> None:
    """Raise RuleViolation for a host that is neither an IP address nor a DNS name (a URL, a name with a port, …)."""
    if ":" in host and len(host) <= _MAX_HOST:
        try:
            plain = str(ipaddress.IPv6Address(host))
        except ValueError:
            plain = ""
        if plain and "%" not in plain:
            if plain != host.lower():
                raise invalid(f"the IPv6 address {quoted(host)} must be written as {plain!r}")
            return
    elif len(host) <= _MAX_HOST and _DNS_NAME.fullmatch(host):
        named = not host.rpartition(".")[2].isdigit()  # no top-level domain is a number
        if named or _IPV4.fullmatch(host):
            return
    raise invalid(f"the host {quoted(host)} is neither an IP address nor a DNS name. Give the port separately")


def check_distinct(label: str, ids: Sequence[str]) -> None:
    """Raise RuleViolation for a list with a duplicate."""
    if len(set(ids)) == len(ids):
        return
    seen: dict[str, int] = {}
    for index, id in enumerate(ids):
        if id in seen:
            raise invalid(
                f"{label} {quoted(id)} is listed twice, at {seen[id]} and {index} (counted from 0). List it once"
            )
        seen[id] = index
