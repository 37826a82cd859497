# SPDX-License-Identifier: GPL-3.0-or-later
"""Handling of presence messages by the controller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.fleet import discovery
from openipu.vipu.fleet.discovery import CONFIRMATION, EXPIRY, MAX_AGENTS_PER_HOST, NEW_AT_ONCE, Discovery


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def listener(clock: Clock) -> Iterator[Discovery]:
    made = Discovery(["lo"], "239.192.73.81", 0, clock)
    yield made
    made.close()


def presence(host: str = "127.2.1.1", port: int = 8080, boot_id: str = "b") -> bytes:
    return bytes(contract.Presence(host=host, port=port, boot_id=boot_id).SerializeToString())


def announce(listener: Discovery, port: int, host: str = "127.2.1.1") -> None:
    listener.receive(presence(host, port), host, "lo")


def ports(listener: Discovery) -> list[int]:
    return [entry.port for entry in listener.discovered()]


def test_recent_agents(listener: Discovery, clock: Clock) -> None:
    listener.receive(presence("127.2.1.10"), "127.2.1.10", "lo")
    clock.now += 4
    listener.receive(presence("127.2.1.9"), "127.2.1.9", "lo")
    listener.receive(presence("", 8081), "127.2.1.9", "lo")
    first, second, third = listener.discovered()
    assert [(entry.host, entry.port, entry.age) for entry in (first, second, third)] == [
        ("127.2.1.9", 8080, 0.0),
        ("127.2.1.9", 8081, 0.0),
        ("127.2.1.10", 8080, 4.0),
    ]
    assert first.auto_id == "127.2.1.9-8080"
    clock.now += EXPIRY - 1
    assert [entry.host for entry in listener.discovered()] == ["127.2.1.9", "127.2.1.9"]
    listener.receive(presence("127.2.1.10"), "127.2.1.10", "lo")
    assert len(listener.discovered()) == 3


@pytest.mark.parametrize(
    "message",
    [
        presence(host="127.9.9.9"),  # differs from the source address
        presence(port=0),
        presence(port=65536),
        presence(boot_id=""),
        b"\xff\xff\xff",
        b"",
    ],
)
def test_wrong_messages_are_ignored(listener: Discovery, message: bytes) -> None:
    listener.receive(message, "127.2.1.1", "lo")
    assert listener.discovered() == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=600))
def test_random_messages_raise_no_error(listener: Discovery, message: bytes) -> None:
    listener.receive(message, "127.2.1.1", "lo")
    assert len(listener.discovered()) <= 1


def test_the_table_is_bounded_and_drops_expired_agents(
    listener: Discovery, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "MAX_AGENTS", 3)
    for port in range(1, 5):
        announce(listener, port)
    assert ports(listener) == [2, 3, 4], "the oldest one made room"
    clock.now += CONFIRMATION
    for port in (2, 4):
        announce(listener, port)
    for port in (5, 6):
        announce(listener, port)
    assert ports(listener) == [2, 4, 6], "confirmed agents stay"
    clock.now += CONFIRMATION
    announce(listener, 6)
    announce(listener, 7)
    assert ports(listener) == [2, 4, 6], "all are confirmed"
    clock.now += EXPIRY + 1
    announce(listener, 9)
    assert ports(listener) == [9]
    assert len(listener._agents) == sum(listener._of_host.values()) == 1


def test_one_host_has_a_few_agents_only(listener: Discovery, clock: Clock) -> None:
    for port in range(1, 100):
        announce(listener, port)
    announce(listener, 1, "127.2.1.2")
    assert ports(listener) == [*range(1, MAX_AGENTS_PER_HOST + 1), 1]
    clock.now += EXPIRY + 1
    announce(listener, 99)
    assert ports(listener) == [99]


def test_new_agents_are_limited_and_known_ones_are_not(listener: Discovery, clock: Clock) -> None:
    announce(listener, 1)
    with capture_logs() as logs:
        for number in range(5_000):
            announce(listener, 1, f"127.3.{number // 250}.{number % 250}")
    assert len(listener.discovered()) == NEW_AT_ONCE
    assert [entry["event"] for entry in logs] == ["too many announced agents"]
    clock.now += 5.0
    announce(listener, 1)
    announce(listener, 1, "127.4.1.1")
    ages = {entry.host: entry.age for entry in listener.discovered()}
    assert (ages["127.2.1.1"], ages["127.4.1.1"]) == (0.0, 0.0)


def test_invalid_interfaces_and_groups() -> None:
    with pytest.raises(OSError, match=r"Cannot find network interface 'nothing0': .* Choose from .*lo"):
        Discovery(["nothing0"], "239.192.73.81", 0)
    for group in ("10.0.0.1", "nowhere", "ff02::1"):
        with pytest.raises(OSError, match="is not an IPv4 multicast group"):
            Discovery(["lo"], group, 0)
