# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of connections."""

from __future__ import annotations

import resource

from openipu.process.limits import connection_limit


def test_a_quarter_of_the_files_remains() -> None:
    assert connection_limit(1024) == 768
    assert connection_limit(1 << 20) == connection_limit(resource.RLIM_INFINITY) == 16_384
