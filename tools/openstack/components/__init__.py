# SPDX-License-Identifier: GPL-3.0-or-later
"""Services of the cloud, one module each, in the order of their start."""

from __future__ import annotations

from ..component import Component
from ..site import Site
from . import cinder, glance, keystone, manila, neutron, nova, placement

NETWORK = (keystone, neutron)
ALL = (*NETWORK, placement, glance, nova, cinder, manila)


def declare(site: Site, network_only: bool = False) -> list[Component]:
    """Return the components of a cloud."""
    return [module.declare(site) for module in (NETWORK if network_only else ALL)]
