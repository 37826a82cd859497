# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of threads to coroutines of an event loop that ends."""

from __future__ import annotations

import asyncio

import pytest

from openipu.vipu.lifecycle.loop_calls import LoopCalls
from openipu.vipu.storage.interface import StoppedError


async def forever() -> None:
    await asyncio.Event().wait()


async def one() -> int:
    return 1


def test_no_call_outlives_its_loop() -> None:
    loop = asyncio.new_event_loop()
    calls = LoopCalls(loop)
    started = calls.submit(forever())
    finished = calls.submit(one())
    loop.run_until_complete(asyncio.sleep(0))
    late = calls.submit(forever())  # its task does not exist yet
    loop.run_until_complete(calls.end())
    assert finished.result(0) == 1
    for future in (started, late, calls.submit(forever())):
        with pytest.raises(StoppedError):
            future.result(0)
    loop.close()
