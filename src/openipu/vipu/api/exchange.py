# SPDX-License-Identifier: GPL-3.0-or-later
"""Time limits for the messages of a call: clients that send or read too slowly are cancelled."""

from __future__ import annotations

import time
from collections.abc import Iterator

import grpc

RECEIVE_SECONDS = 10.0  # until a request has arrived
SEND_SECONDS = 60.0  # until the client has taken a reply


class IncompleteCallError(Exception):
    """Raised when a call ends before its request was read."""

    error_code = "OPU622"


class CancelledError(IncompleteCallError):
    """Raised when the client has cancelled the call."""


class LateRequestError(IncompleteCallError):
    """Raised when a request did not arrive in time."""


class NoRequestError(IncompleteCallError):
    """Raised when the client has ended its side of the call without a request."""


class Exchanges:
    """Calls that wait for their client, with deadlines. ``cancel_late`` must be called repeatedly."""

    def __init__(self) -> None:
        self._deadlines: dict[grpc.ServicerContext, float] = {}

    def receive(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        """Return the next request. Raises CancelledError, LateRequestError and NoRequestError."""
        deadline = self._deadlines[context] = time.monotonic() + RECEIVE_SECONDS
        try:
            return next(requests)
        except StopIteration:
            raise NoRequestError from None
        except grpc.RpcError:
            raise (LateRequestError if time.monotonic() >= deadline else CancelledError) from None
        finally:
            self._deadlines.pop(context, None)

    def send(self, context: grpc.ServicerContext) -> None:
        """Start the time limit of a reply, until ``end``."""
        self._deadlines[context] = time.monotonic() + SEND_SECONDS
        if not context.is_active():  # ``end`` may have been called already
            self.end(context)

    def end(self, context: grpc.ServicerContext) -> None:
        """End the time limit of a call."""
        self._deadlines.pop(context, None)

    def cancel_late(self) -> None:
        """Cancel the calls whose time is over."""
        now = time.monotonic()
        for context, deadline in self._deadlines.copy().items():
            if now >= deadline:
                context.cancel()
