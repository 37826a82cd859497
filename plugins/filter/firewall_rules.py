# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: firewall_rules
short_description: Firewall rules of a host of a POD
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Generates nftables rules from the kinds of a host, based on the table of the reference design. The role P(openipu.pod.common#role) loads them.
positional: _input
options:
  _input:
    description:
      - Kinds of the host, from V(controller), V(control_instance) (VM of a vPOD), V(poplar), V(management) (serves DHCP,
        DNS and NTP, and receives logs) and V(agent).
    type: list
    elements: str
    required: true
  networks:
    description: Networks V(bmc), V(gw), V(management), V(data) and V(storage), each with C(subnet), in the format of the variable C(pod_networks).
    type: dict
    required: true
  interfaces:
    description: Interface of the host by network. Rules match a network by its subnet, its interface, or both.
    type: dict
    default: {}
  peers:
    description:
      - Addresses or subnets of other hosts, in C(dns_servers), C(management_servers), C(nfs_servers), C(controllers) and C(poplar_servers).
        Also the ports of agents and controller, in C(agent_port) and C(controller_port).
      - The default for C(controllers) and C(poplar_servers) is the whole management network.
    type: dict
    required: true
  allow:
    description:
      - Additional rules, each with C(ports), and optionally C(direction) (V(in) or V(out)), C(protocol), C(network), C(sources) or, for
        outgoing traffic, C(destinations), and C(comment).
    type: list
    elements: dict
    default: []
  forward:
    description: Interfaces whose packets the host may forward. A C(*) at the end of a name matches any rest.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show the firewall rules
  ansible.builtin.debug:
    msg: "{{ ['controller'] | openipu.pod.firewall_rules(networks=pod_networks, interfaces={'gw': 'eno1'}, peers=peers) }}"
  vars:
    peers: {dns_servers: [10.1.2.101], agent_port: 8080, controller_port: 8090}
"""

RETURN = r"""
_value:
  description: Rules of the chains C(input), C(output) and C(forward), each a line in the syntax of C(nft).
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.module_utils.pod.firewall import firewall


def firewall_rules(
    kinds: t.Sequence[str],
    networks: dict[str, t.Any],
    peers: dict[str, t.Any],
    interfaces: dict[str, str] | None = None,
    allow: t.Sequence[dict[str, t.Any]] = (),
    forward: t.Sequence[str] = (),
) -> dict[str, list[str]]:
    try:
        return firewall(kinds, networks, interfaces or {}, peers, allow, forward)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from None


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"firewall_rules": firewall_rules}
