# SPDX-License-Identifier: GPL-3.0-or-later
"""Stream of replies that needs no thread while it waits for changes or for its client.

The synchronous server of gRPC sends a reply of a stream in the calling thread, which blocks until the client has
room for it. One slow client could then hold up all others. So this module starts the send operation itself, as that
server does, and returns. It is the only module that uses private parts of grpcio.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grpc import _server
from grpc._cython import cygrpc

from openipu.vipu.api.auth import Caller
from openipu.vipu.api.convert import Message

_NO_FLAGS = 0


class ReplyStream:
    """Replies of one call. Send one at a time: the next when ``sent`` was called for the last one."""

    def __init__(
        self,
        context: Any,
        encode: Callable[[Message], bytes],
        identify: Callable[[], Caller],
        fail: Callable[[Exception], None],
    ) -> None:
        """``identify`` returns the present rights of the caller, ``fail`` ends the call with the status of an error."""
        self._context = context
        self._encode = encode
        self._fail = fail
        self.identify = identify

    def on_end(self, callback: Callable[[], None]) -> bool:
        """Register a callback for the end of the call. Return False when it has ended already."""
        return bool(self._context.add_callback(callback))

    def send(self, reply: Message, sent: Callable[[], None]) -> bool:
        """Start to send a reply. ``sent`` is called in a thread of gRPC, when the client has room or is gone.

        Return False when the call has ended; ``sent`` is not called then.
        """
        state, call = self._context._state, self._context._rpc_event.call
        data = self._encode(reply)
        with state.condition:
            if not _server._is_rpc_state_active(state):
                return False
            operations = [cygrpc.SendMessageOperation(data, _NO_FLAGS)]
            if state.initial_metadata_allowed:
                operations.insert(0, _server._get_initial_metadata_operation(state, None))
                state.initial_metadata_allowed = False
            token = object()

            def complete(_: Any) -> Any:
                with state.condition:
                    finished = _server._possibly_finish_call(state, token)
                sent()
                return finished

            call.start_server_batch(operations, complete)
            state.due.add(token)
        return True

    def fail(self, error: Exception) -> None:
        """End the call with the status of an error. No reply may be on its way."""
        self._fail(error)

    def cancel(self) -> None:
        """End the call at once, with status CANCELLED, even while a reply is on its way."""
        self._context.cancel()
