# SPDX-License-Identifier: GPL-3.0-or-later
"""What a controller believes of the presence that it hears."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openipu.vipu import discovery
from openipu.vipu.agent.contract import agent as contract
from openipu.vipu.discovery import EXPIRY, Discovery


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def heard(clock: Clock) -> Iterator[Discovery]:
    made = Discovery(["lo"], "239.192.73.81", 0, clock)
    yield made
    made.close()


def presence(host: str = "127.2.1.1", port: int = 8080, boot_id: str = "b") -> bytes:
    return bytes(contract.Presence(host=host, port=port, boot_id=boot_id).SerializeToString())


def test_who_was_heard_lately(heard: Discovery, clock: Clock) -> None:
    heard.hear(presence("127.2.1.10"), "127.2.1.10", "lo")
    clock.now += 4
    heard.hear(presence("127.2.1.9"), "127.2.1.9", "lo")
    heard.hear(presence("", 8081), "127.2.1.9", "lo")
    first, second, third = heard.discovered()
    assert [(entry.host, entry.port, entry.age) for entry in (first, second, third)] == [
        ("127.2.1.9", 8080, 0.0),
        ("127.2.1.9", 8081, 0.0),
        ("127.2.1.10", 8080, 4.0),
    ]
    assert first.auto_id == "127.2.1.9-8080"
    clock.now += EXPIRY - 1
    assert [entry.host for entry in heard.discovered()] == ["127.2.1.9", "127.2.1.9"]
    heard.hear(presence("127.2.1.10"), "127.2.1.10", "lo")
    assert len(heard.discovered()) == 3


@pytest.mark.parametrize(
    "message",
    [
        presence(host="127.9.9.9"),  # not where it comes from
        presence(port=0),
        presence(port=65536),
        presence(boot_id=""),
        b"\xff\xff\xff",
        b"",
    ],
)
def test_wrong_messages_are_ignored(heard: Discovery, message: bytes) -> None:
    heard.hear(message, "127.2.1.1", "lo")
    assert heard.discovered() == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=600))
def test_random_messages_do_no_harm(heard: Discovery, message: bytes) -> None:
    heard.hear(message, "127.2.1.1", "lo")
    assert len(heard.discovered()) <= 1


def test_the_table_is_bounded_and_makes_room_for_new_ones(
    heard: Discovery, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "MOST_AGENTS", 3)
    for port in range(1, 10):
        heard.hear(presence(port=port), "127.2.1.1", "lo")
    assert [entry.port for entry in heard.discovered()] == [1, 2, 3]
    clock.now += EXPIRY + 1
    heard.hear(presence(port=9), "127.2.1.1", "lo")
    assert [entry.port for entry in heard.discovered()] == [9]


def test_where_nobody_can_listen() -> None:
    with pytest.raises(OSError, match=r"no network interface 'nothing0'; this machine has: .*lo"):
        Discovery(["nothing0"], "239.192.73.81", 0)
    for group in ("10.0.0.1", "nowhere", "ff02::1"):
        with pytest.raises(OSError, match="is no IPv4 multicast group"):
            Discovery(["lo"], group, 0)
