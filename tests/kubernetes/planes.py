# SPDX-License-Identifier: GPL-3.0-or-later
"""Control planes of the workers of pytest-xdist, which run at the same time."""

from __future__ import annotations

import os

from tools.kubernetes.control_plane import ControlPlane
from tools.kubernetes.site import STATE

_ADDRESS = "127.12.1.{}"  # that of another control plane of this machine is 127.12.0.1


def own_plane() -> ControlPlane:
    """Return the control plane of this worker, or of a session without workers."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return ControlPlane(STATE.with_name(f"tests-{number}"), address=_ADDRESS.format(number + 1))
