# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals that stop a service."""

from __future__ import annotations

import asyncio
import contextlib
import signal


async def stop_signal() -> None:
    """Return at the first SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with contextlib.suppress(asyncio.CancelledError):
        await stop.wait()
