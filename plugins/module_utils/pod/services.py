# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who in a POD has which name, address and MAC: what DHCP and DNS of a stand-alone POD are to serve. Pure."""

from __future__ import annotations

import typing as t

from . import model
from .networking import dns_name

Config = dict[str, t.Any]

# Where nobody says otherwise: the top-level domain that is kept free for private use.
_DOMAIN = "internal"


def network_services(pod: model.Pod) -> Config:
    """The domain of a POD, its networks, and its hosts: every interface with an address.

    The shape is ``domain``; ``networks``, by name, each with ``subnet`` (of the form 10.1.1.0/24) and perhaps
    ``gateway`` (an address) and ``mtu`` (bytes); and ``hosts``, rack by rack, each with ``device``, ``name`` (a DNS
    label), ``aliases`` (more of them), ``network``, ``address`` and perhaps ``mac``.
    """
    cloud = pod.cloud
    networks: dict[str, Config] = {}
    for network in pod.networks.values():
        if not network.subnet:
            continue
        networks[network.name] = {"subnet": network.subnet}
        if cloud and network.name in cloud.gateways:
            networks[network.name]["gateway"] = cloud.gateways[network.name]
        if model.SWITCHES[network.name] == model.DATA:
            networks[network.name]["mtu"] = cloud.mtu if cloud else model.DATA_MTU
    domain = cloud.dns_domain.rstrip(".") if cloud and cloud.dns_domain else "%s.%s" % (dns_name(pod.name), _DOMAIN)
    hosts = [_host(device, each) for device in pod.devices for each in device.interfaces if each.address]
    return {"domain": domain, "networks": networks, "hosts": hosts}


def _host(device: model.Device, interface: model.Interface) -> Config:
    """One interface; the one that the device is reached by has the device's own name too."""
    host = {
        "device": device.name,
        "name": dns_name(device.name, interface.name),
        "aliases": [dns_name(device.name)] if interface.name == device.reached_by else [],
        "network": interface.networks[0],
        "address": interface.address,
    }
    return {**host, "mac": interface.mac} if interface.mac else host
