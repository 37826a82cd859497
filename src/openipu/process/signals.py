# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals that stop a service or a command."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any, NoReturn


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
    """Turn SIGTERM into SystemExit, so that ``finally`` runs; a second one is ignored. For the main thread only."""

    def leave(number: int, _frame: Any) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)  # the status that shells report

    with _handled(signal.SIGTERM, leave):
        yield


@contextlib.contextmanager
def one_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt for the first SIGINT, and ignore further ones, so that ``finally`` runs to its end.

    For the main thread only. A SIGINT that the caller of the program ignores is still ignored.
    """

    def leave(number: int, _frame: Any) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    with _handled(signal.SIGINT, leave):
        yield


@contextlib.contextmanager
def _handled(number: signal.Signals, handler: Callable[[int, Any], NoReturn]) -> Iterator[None]:
    """Call a handler for a signal."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
