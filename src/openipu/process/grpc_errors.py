# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of gRPC calls, as parts of messages."""

from __future__ import annotations

import re

_DETAILS = re.compile(r"(?:.*last error: )?(?:[A-Z_]+: )?(?:ipv[46]:\S+: )?(?:connect: )?(.*)", re.DOTALL)


def clause(details: str) -> str:
    """Return gRPC's details of a failed call as a clause, without addresses and prefixes."""
    match = _DETAILS.fullmatch(details)
    return match[1] if match else details
