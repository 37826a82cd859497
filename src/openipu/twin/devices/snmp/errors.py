# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of an SNMP request (RFC 3416, 3)."""

from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """The error-status values that the twin returns."""

    TOO_BIG = 1
    NO_ACCESS = 6
    WRONG_TYPE = 7
    WRONG_LENGTH = 8
    WRONG_VALUE = 10
    NO_CREATION = 11
    INCONSISTENT_VALUE = 12
    COMMIT_FAILED = 14
    NOT_WRITABLE = 17


class SnmpError(Exception):
    """Raised when a request fails. ``index`` is the number of the variable, from 1; 0 is none of them."""

    def __init__(self, status: Status, index: int = 0) -> None:
        super().__init__(status.name)
        self.status = status
        self.index = index
