# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals that stop a service or a command."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

_STOPS = (signal.SIGINT, signal.SIGTERM)


async def stop_signal() -> None:
    """Return at the first SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with contextlib.suppress(asyncio.CancelledError):
        await stop.wait()


@contextlib.contextmanager
def sigterm_exits() -> Iterator[None]:
    """Turn SIGTERM into SystemExit, so that ``finally`` runs. For the main thread only.

    A second SIGTERM and a SIGINT are then ignored.
    """

    def leave(number: int, _frame: Any) -> NoReturn:
        _ignore_all()
        raise SystemExit(128 + number)  # the status that shells report

    with _handled(signal.SIGTERM, leave):
        yield


@contextlib.contextmanager
def one_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt for the first SIGINT, so that ``finally`` runs to its end.

    Further ones and a SIGTERM are then ignored. For the main thread only. A SIGINT that the caller of the program
    ignores is still ignored.
    """

    def leave(_number: int, _frame: Any) -> NoReturn:
        _ignore_all()
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    with _handled(signal.SIGINT, leave):
        yield


@contextlib.contextmanager
def _handled(number: signal.Signals, handler: Callable[[int, Any], NoReturn]) -> Iterator[None]:
    """Call a handler for a signal. Restore the handlers of all signals that it may ignore."""
    before = {each: signal.getsignal(each) for each in _STOPS}
    signal.signal(number, handler)
    try:
        yield
    finally:
        for each, former in before.items():
            signal.signal(each, former)


def _ignore_all() -> None:
    for each in _STOPS:
        signal.signal(each, signal.SIG_IGN)
