# SPDX-License-Identifier: GPL-3.0-or-later
"""Handling of presence messages by the controller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.fleet import discovery
from openipu.vipu.fleet.discovery import EXPIRY, Discovery


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
    for port in range(1, 10):
        listener.receive(presence(port=port), "127.2.1.1", "lo")
    assert [entry.port for entry in listener.discovered()] == [1, 2, 3]
    clock.now += EXPIRY + 1
    listener.receive(presence(port=9), "127.2.1.1", "lo")
    assert [entry.port for entry in listener.discovered()] == [9]


def test_invalid_interfaces_and_groups() -> None:
    with pytest.raises(OSError, match=r"Cannot find network interface 'nothing0': .* Choose from .*lo"):
        Discovery(["nothing0"], "239.192.73.81", 0)
    for group in ("10.0.0.1", "nowhere", "ff02::1"):
        with pytest.raises(OSError, match="is not an IPv4 multicast group"):
            Discovery(["lo"], group, 0)
