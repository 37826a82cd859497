# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of agents: the fast check of IPv4 addresses agrees with the standard library."""

from __future__ import annotations

import ipaddress

from hypothesis import example, given
from hypothesis import strategies as st

from openipu.vipu.domain.errors import RuleViolation
from openipu.vipu.domain.validation import check_host


def accepted(host: str) -> bool:
    """Return whether the rules accept a host."""
    try:
        check_host(host)
    except RuleViolation:
        return False
    return True


def is_ipv4(host: str) -> bool:
    """Return whether the standard library accepts a host as IPv4 address."""
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


octets = st.one_of(st.integers(0, 300).map(str), st.text("0123456789", min_size=1, max_size=4))


@given(st.lists(octets, min_size=1, max_size=5).map(".".join))
@example("10.0.0.01")
@example("10.0.0.256")
@example("10.0.0.255")
@example("1.2.3")
@example("1.2.3.4\n")
def test_numbers_are_hosts_only_as_an_ipv4_address(host: str) -> None:
    assert accepted(host) == is_ipv4(host)
