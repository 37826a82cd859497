# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource limits of this process."""

from __future__ import annotations

import resource

_MAX_CONNECTIONS = 16_384


def raise_file_limit() -> int:
    """Raise the limit of open files, and so of connections, to the hard limit, and return that.

    The usual soft limit of 1024 exists for programs that use select(), which this one does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def connection_limit(files: int) -> int:
    """Return the connections that a server may accept with a limit of open files, of which it leaves a quarter.

    A server that cannot open a file for a connection would try again and again.
    """
    return min(_MAX_CONNECTIONS, files * 3 // 4) if files > 0 else _MAX_CONNECTIONS
