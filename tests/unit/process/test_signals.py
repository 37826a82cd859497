# SPDX-License-Identifier: GPL-3.0-or-later
"""A signal that stops a command lets it clean up, whatever signal follows."""

from __future__ import annotations

import signal

import pytest

from openipu.process.signals import one_interrupt, sigterm_exits


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_does_not_end_the_cleanup(first: signal.Signals, second: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    cleaned = False
    with pytest.raises((KeyboardInterrupt, SystemExit)), sigterm_exits(), one_interrupt():
        try:
            signal.raise_signal(first)
        finally:
            signal.raise_signal(second)
            cleaned = True
    assert cleaned
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
