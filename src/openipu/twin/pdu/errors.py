# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an agent refuses a request (RFC 3416, 3)."""

from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """The error-status values that the twin gives."""

    TOO_BIG = 1
    NO_ACCESS = 6
    WRONG_TYPE = 7
    WRONG_LENGTH = 8
    WRONG_VALUE = 10
    NO_CREATION = 11
    INCONSISTENT_VALUE = 12
    COMMIT_FAILED = 14
    NOT_WRITABLE = 17


class Refusal(Exception):
    """A request that is not done; ``index`` counts its variables from 1, and 0 is none of them."""

    def __init__(self, status: Status, index: int = 0) -> None:
        """See the class."""
        super().__init__(status.name)
        self.status = status
        self.index = index
