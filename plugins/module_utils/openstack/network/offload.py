# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal of the offload type from ports for which Nova reports the capability ``switchdev``.

Neutron binds a virtual function with Open vSwitch only if the port has this capability. Nova reports it from the
card since 2024.1 (29.0.0), and since 28.0.1, 27.2.0 and 26.2.1 of older series. Before, the port needs the attribute
``hardware_offload_type``, which Neutron has since 2023.2 with an extension driver. The newest microversion identifies
2024.1, but not the corrections of older series.
"""

from __future__ import annotations

import typing as t

from ...reconcile import Object
from ..common.client import Cloud

EXTENSION = "port-hardware-offload-type"
_NOVA_REPORTS_CARD = (2, 96)  # newest microversion of Nova 2024.1


class Extensions(t.Protocol):
    """Extensions of Neutron."""

    def has_extension(self, alias: str) -> bool:
        """Return whether Neutron has an API extension."""


def supported_ports(ports: t.Sequence[Object], cloud: Cloud, extensions: Extensions) -> list[Object]:
    """Return desired ports, without the offload type if this Neutron cannot store it and this Nova does not need it.

    Raises CloudError when a service cannot be read.
    """
    offloaded = any(port.get("hardware_offload") for port in ports)
    if not offloaded or extensions.has_extension(EXTENSION) or not _nova_reports_card(cloud):
        return list(ports)
    return [{key: value for key, value in port.items() if key != "hardware_offload"} for port in ports]


def _nova_reports_card(cloud: Cloud) -> bool:
    newest = cloud.max_microversion("compute")
    return newest is not None and newest >= _NOVA_REPORTS_CARD
