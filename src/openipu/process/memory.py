# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of this process."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable


def trim() -> None:
    """Return free memory to the system. Do nothing with a C library other than glibc."""
    function = _malloc_trim()
    if function is not None:
        function(0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
