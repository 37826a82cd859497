# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGINT for commands that run until they are interrupted."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Interruption:
    """SIGINT as a flag that cancels the running call, instead of an exception.

    Python raises KeyboardInterrupt in any code that runs then, and ignores it inside a finalizer or a callback of a
    library. So this process blocks the signal, and a thread waits for it. A second SIGINT ends the process.
    """

    def __init__(self) -> None:
        """Handle SIGINT from now on. Create it before threads of libraries start: they inherit the blocked signal."""
        self._received = threading.Event()
        self._call: Any = None
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        threading.Thread(target=self._wait, name="interruption", daemon=True).start()

    @property
    def received(self) -> bool:
        """Return whether the command was interrupted."""
        return self._received.is_set()

    def cancels(self, call: Any) -> None:
        """Cancel a gRPC call when the command is interrupted, or was."""
        self._call = call
        if self.received:
            call.cancel()

    def pause(self, seconds: float) -> None:
        """Return after some seconds, or as soon as the command is interrupted."""
        self._received.wait(seconds)

    def _wait(self) -> None:
        signal.sigwait({signal.SIGINT})
        self._received.set()  # before the call is read: ``cancels`` does both in the other order
        if self._call is not None:
            self._call.cancel()
        signal.sigwait({signal.SIGINT})  # the output blocks, for example
        signal.raise_signal(signal.SIGTERM)
