# SPDX-License-Identifier: GPL-3.0-or-later
"""State notifications to the service manager, by systemd's protocol (sd_notify)."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Send ``READY=1`` or ``STOPPING=1``. Do nothing without a service manager that listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket address
        address = "\0" + address[1:]
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager,
    ):
        manager.connect(address)
        manager.sendall(state.encode())
