# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of the inventory of a twin, whose addresses are all on loopback."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from openipu.shared.pod import model
from openipu.shared.pod.load import PodError, load
from openipu.twin.launch import hints, rack_config
from openipu.twin.launch.errors import InvalidPodError, TwinError


def read_pod(inventory: Path) -> model.Pod:
    """Return the POD of an inventory. Raises TwinError unless all of its addresses are on loopback."""
    try:
        pod = load(str(inventory))
    except PodError as error:
        raise InvalidPodError(str(error)) from None
    for host in [*pod.controller_hosts, *rack_config.hosts(pod)]:
        try:
            loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            loopback = False
        if not loopback:
            raise TwinError(
                f"Cannot start a twin of {inventory}: the address {host} is not on loopback (127.x.y.z), so this is "
                f"a real POD. Rehearse it instead: {hints.program('openipu-pod')} rehearse {inventory.parent}"
            )
    return pod
