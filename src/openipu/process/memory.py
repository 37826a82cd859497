# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of this process."""

from __future__ import annotations

import ctypes
import functools
import gc
from collections.abc import Callable

YOUNG_OBJECTS = 10_000
"""New objects that start a search for cyclic garbage. The default of Python, 700, suits small programs."""


def trim() -> None:
    """Return free memory to the system. Do nothing with a C library other than glibc."""
    function = _malloc_trim()
    if function is not None:
        function(0)


def reduce_collections() -> None:
    """Search for cyclic garbage less often, and never among the objects that exist now. Call it after the start.

    Reference counts free almost everything. A search visits the objects, and the modules alone have a hundred
    thousand. The calls and records of a busy controller would start complete searches several times per second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
