# SPDX-License-Identifier: GPL-3.0-or-later
"""Check of each write at the last moment: when it has its connection, just before it is sent.

A request may wait for a connection. When the process is stopped meanwhile, a check before that would be outdated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import aiohttp

Check = Callable[[], None]
"""Raises an error if the write must not be sent."""

_check: ContextVar[Check | None] = ContextVar("check", default=None)


@contextlib.contextmanager
def checked(check: Check | None) -> Iterator[None]:
    """Check the requests of this task, which use a session of ``install``."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def install(session: aiohttp.ClientSession) -> None:
    """Make a session check its requests, if they are ``checked``."""
    connector: Any = session.connector
    connect = connector.connect

    async def checked_connect(*arguments: Any, **options: Any) -> Any:
        connection = await connect(*arguments, **options)
        check = _check.get()
        try:
            if check is not None:
                check()
        except BaseException:
            connection.release()
            raise
        return connection

    connector.connect = checked_connect
