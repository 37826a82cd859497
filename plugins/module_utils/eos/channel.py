# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection of pyeapi to a switch that stays open between requests."""

from __future__ import annotations

import logging
import typing as t

if t.TYPE_CHECKING:
    import http.client
    import ssl


def open_channel(
    host: str, port: int | None, timeout: float, context: ssl.SSLContext | None, login: tuple[str, str] | None
) -> t.Any:
    """Return a connection of pyeapi on a persistent transport, over TLS with a context.

    ``login`` is a user name with its password. Without it nothing is sent, because a switch ignores the client
    certificate otherwise.
    """
    from pyeapi import eapilib  # not at import: pyeapi opens a socket to syslog and adds handlers to its logger

    # It logs requests including secrets, and tracebacks of errors that become messages of tasks.
    logging.getLogger(eapilib.__name__).disabled = True
    channel = eapilib.EapiConnection()
    if login:
        channel.authentication(*login)
    target: dict[str, t.Any] = {"host": host, "timeout": timeout}
    if context:
        transport = _persistent(eapilib.HttpsConnection)
        channel.transport = transport("/command-api", port=port or 443, context=context, **target)
    else:
        channel.transport = _persistent(eapilib.HttpConnection)("/command-api", port=port or 80, **target)
    return channel


def _persistent(transport: t.Any) -> t.Any:
    return type(transport.__name__, (_Persistent, transport), {})


class _Persistent:
    """Transport that stays open although pyeapi closes it after every request.

    It closes after a failed request and when the switch closes the connection.
    """

    _finished = True

    def putrequest(self, *args: t.Any, **more: t.Any) -> None:
        self._finished = True
        super().putrequest(*args, **more)  # type: ignore[misc]

    def getresponse(self) -> http.client.HTTPResponse:
        response: http.client.HTTPResponse = super().getresponse()  # type: ignore[misc]
        self._finished = response.will_close
        return response

    def close(self) -> None:
        if self._finished:
            super().close()  # type: ignore[misc]

    def disconnect(self) -> None:
        self._finished = True
        self.close()
