# SPDX-License-Identifier: GPL-3.0-or-later
"""Control planes of workers of pytest-xdist and of other sessions, which run at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from tests.kubernetes.cluster import Cluster
from tests.ports import Locks, is_free
from tools.kubernetes import programs
from tools.kubernetes.control_plane import ControlPlane
from tools.kubernetes.site import PORTS, STATE

_ADDRESS = "127.12.1.{}"  # that of another control plane of this machine is 127.12.0.1
_MOST = 250

_planes = Locks("control-planes")


@cache
def own_plane() -> ControlPlane:
    """Return the control plane that most tests of this process share."""
    return new_plane()


@contextmanager
def started(plane: ControlPlane) -> Iterator[Cluster]:
    """Start a control plane, and stop it at the end."""
    plane.down()  # of a killed run
    folder = programs.ensure_programs(print)
    try:
        plane.up(folder)
        yield Cluster(folder / "kubectl", plane.site.kubeconfig())
    finally:
        plane.down()


def new_plane() -> ControlPlane:
    """Return a control plane that no other test uses, also of another process or checkout.

    The state folder of a killed session is used again, with its address.
    """
    for number in range(1, _MOST + 1):
        state, address = STATE.with_name(f"tests-{number}"), _ADDRESS.format(number)
        if _planes.take(number):
            if state.exists() or all(is_free(address, port) for port in PORTS.values()):
                return ControlPlane(state, address=address)
            _planes.release(number)  # a killed session of another checkout left processes
    raise OSError(f"Cannot start a control plane: {_MOST} test processes have one. Wait for their end.")
