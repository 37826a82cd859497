# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: served_by
short_description: DHCP and DNS data that one host serves to the networks of a POD
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Generates leases, names and zones for a DHCP and DNS server from the variables of the inventory plugin P(openipu.pod.pod#inventory).
positional: _input, host
options:
  _input:
    description: Variable C(pod_services) of the inventory plugin.
    type: dict
    required: true
  host:
    description: Name of the device in the POD, the variable C(pod_device) of the inventory plugin.
    type: str
    required: true
  facts:
    description: Facts of the host, including the subset C(network).
    type: dict
    required: true
  networks:
    description:
      - Served networks of the POD by name, each with C(interface), and optionally C(gateway), C(mtu), C(dns_servers) and C(ntp_servers).
      - The address of the host in the network is the address of the interface.
    type: dict
    required: true
  hosts:
    description: Additional hosts, each with C(name), C(network) and C(address), and optionally C(aliases) and C(mac).
    type: list
    elements: dict
    default: []
  domain:
    description: DNS domain. The default is the domain of the POD.
    type: str
"""

EXAMPLES = r"""
- name: Show the DHCP leases
  ansible.builtin.debug:
    msg: "{{ (pod_services | openipu.pod.served_by(pod_device, facts=ansible_facts, networks=served)).leases }}"
  vars:
    served:
      management: {interface: eno2, gateway: 10.1.3.1}
"""

RETURN = r"""
_value:
  description:
    - C(problems), a list of messages. When it is not empty, the other values are incomplete.
    - C(domain), and C(zones), for which the host is authoritative.
    - C(networks), each with C(name), C(interface), C(subnet), C(start), C(netmask), C(address), C(gateway), C(mtu), C(dns_servers), C(ntp_servers).
    - C(leases), each with C(mac), C(address) and C(name), and C(names), each with C(address) and C(names).
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.module_utils.pod.dhcp_dns import serve


def served_by(
    services: t.Any,
    host: str,
    facts: dict[str, t.Any],
    networks: dict[str, dict[str, t.Any]],
    hosts: t.Sequence[dict[str, t.Any]] = (),
    domain: str | None = None,
) -> dict[str, t.Any]:
    if not isinstance(services, t.Mapping) or "hosts" not in services:
        raise AnsibleFilterError(
            "served_by: the input is not valid. Pass the variable pod_services of the inventory plugin openipu.pod.pod."
        )
    return serve(services, host, facts, networks, hosts, domain or services["domain"])


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"served_by": served_by}
