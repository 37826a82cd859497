# SPDX-License-Identifier: GPL-3.0-or-later
"""Telling the service manager how far this process is, by systemd's protocol (sd_notify)."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Say ``READY=1`` or ``STOPPING=1``; nothing where no service manager asks or listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # in the abstract name space
        address = "\0" + address[1:]
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager,
    ):
        manager.connect(address)
        manager.sendall(state.encode())
