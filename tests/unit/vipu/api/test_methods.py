# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups of client addresses with limits of log lines."""

from __future__ import annotations

from openipu.vipu.api import methods


def test_ports_of_an_address_share_a_limit() -> None:
    assert methods._party("ipv4:10.1.2.3:40000") == methods._party("ipv4:10.1.2.3:40001")
    assert methods._party("ipv6:%5Bfe80::1%5D:1") == methods._party("ipv6:%5Bfe80::1%5D:2")


def test_many_addresses_have_few_limits() -> None:
    found = {methods._party(f"ipv4:10.1.{number // 256}.{number % 256}:40000") for number in range(65536)}
    assert len(found) == methods._PARTIES
