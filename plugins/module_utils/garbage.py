# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fewer searches for cyclic garbage, where many objects are created that stay. No I/O."""

from __future__ import annotations

import contextlib
import gc
import typing as t


@contextlib.contextmanager
def without_collections() -> t.Iterator[None]:
    """Search for no cyclic garbage, while many objects are created that stay.

    Otherwise, 10,000 partitions start many searches, which take a tenth of the time of the start (measured).
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def large_import() -> t.Iterator[None]:
    """Import a large library without searches, and exclude all objects that exist afterwards from later ones.

    Python also searches several times at its exit. For openstacksdk in a short playbook, all these searches take a
    tenth of the time (measured). The exclusion also keeps the workers of Ansible, which are forks, from copying memory.
    """
    with without_collections():
        try:
            yield
        finally:
            gc.freeze()
