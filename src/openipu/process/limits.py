# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource limits of this process."""

from __future__ import annotations

import resource


def raise_file_limit() -> None:
    """Raise the limit of open files, and so of connections, to the hard limit.

    The usual soft limit of 1024 exists for programs that use select(), which this one does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
