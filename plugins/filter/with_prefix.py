# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: with_prefix
short_description: Addresses with the prefix length of their subnets
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Appends to each address the prefix length of the subnet that contains it, as interface configurations need it.
positional: _input, subnets
options:
  _input:
    description: Addresses.
    type: list
    elements: str
    required: true
  subnets:
    description: Subnets. Each address must be in one of them.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show an address for an interface
  ansible.builtin.debug:
    msg: "{{ ['10.1.2.151'] | openipu.pod.with_prefix(['10.1.1.0/24', '10.1.2.0/24']) }}" # 10.1.2.151/24
"""

RETURN = r"""
_value:
  description: Addresses with prefix length, in the given order.
  type: list
  elements: str
"""

import ipaddress
import typing as t

from ansible.errors import AnsibleFilterError


def with_prefix(addresses: t.Iterable[str], subnets: t.Iterable[str]) -> list[str]:
    try:
        networks = [ipaddress.ip_network(str(subnet)) for subnet in subnets]
        return [_with_prefix(ipaddress.ip_address(str(address)), networks) for address in addresses]
    except ValueError as error:
        raise AnsibleFilterError("Cannot append a prefix length: %s." % error) from None


def _with_prefix(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
    networks: t.Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network],
) -> str:
    for network in networks:
        if address in network:
            return "%s/%d" % (address, network.prefixlen)
    raise ValueError("%s is in none of the subnets (%s)" % (address, ", ".join(map(str, networks)) or "none given"))


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"with_prefix": with_prefix}
