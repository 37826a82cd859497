# SPDX-License-Identifier: GPL-3.0-or-later
"""Rate limit for remote parties."""

from __future__ import annotations

from openipu.vipu.fleet.token_bucket import TokenBucket


def test_only_floods_are_delayed() -> None:
    bucket = TokenBucket(10.0, 5)
    assert [bucket.delay(float(second)) for second in range(100)] == [0.0] * 100
    now, read = 100.0, 0
    while now < 110.0:
        now += bucket.delay(now)
        read += 1
    assert 100 <= read <= 106


def test_events_that_waited_during_a_pause_are_not_delayed() -> None:
    bucket = TokenBucket(10.0, 5)
    assert [bucket.delay(0.0) for _ in range(5)] == [0.0] * 5
    assert bucket.delay(0.0) > 0
    assert bucket.delay(60.0) == 0.0


def test_a_flood_does_not_block_later_events() -> None:
    bucket = TokenBucket(10.0, 5)
    assert sum(bucket.allow(0.0) for _ in range(1000)) == 5
    assert sum(bucket.allow(0.2) for _ in range(1000)) == 2
