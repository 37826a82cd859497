# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of this process."""

from __future__ import annotations

import resource


def raise_file_limit() -> None:
    """Allow as many open files, and so connections, as the system lets this process have.

    The usual soft limit of 1024 is for programs that use select(); none here does.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
