# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of the commands of the twin."""

from __future__ import annotations

from openipu.shared.pod.load import PodError


class TwinError(Exception):
    """Raised when a twin command fails, with a one-line message."""

    error_code = "OPU800"


class InvalidPodError(TwinError):
    """Raised when the POD of the inventory is invalid, with the same code as in a playbook."""

    error_code = PodError.error_code


class RejectedError(TwinError):
    """Raised when the rack rejects a fault or a machine. A twin that was created for it is removed, with its logs."""

    error_code = "OPU801"
