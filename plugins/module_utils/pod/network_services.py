# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, addresses and MACs for the DHCP and DNS services of a stand-alone POD. No I/O."""

from __future__ import annotations

import typing as t

from . import model
from .openstack_networks import dns_name

Config = dict[str, t.Any]

# Default domain: the top-level domain for private use.
_DOMAIN = "internal"


def network_services(pod: model.Pod) -> Config:
    """Return the domain of a POD, its networks, and its hosts: every interface with an address.

    The keys are ``domain``, ``networks`` and ``hosts``. ``networks``, by name, have ``subnet`` (such as 10.1.1.0/24)
    and optionally ``gateway`` (an address) and ``mtu`` (bytes). ``hosts``, rack by rack, have ``device``, ``name`` (a
    DNS label), ``aliases`` (further labels), ``network``, ``address`` and optionally ``mac``.
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
    """Return the host of an interface. The name of the device is an alias of its management interface."""
    host = {
        "device": device.name,
        "name": dns_name(device.name, interface.name),
        "aliases": [dns_name(device.name)] if interface.name == device.reached_by else [],
        "network": interface.networks[0],
        "address": interface.address,
    }
    return {**host, "mac": interface.mac} if interface.mac else host
