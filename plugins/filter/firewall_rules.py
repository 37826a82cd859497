# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: firewall_rules
short_description: What the firewall of a host of a POD lets pass
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Makes rules of nftables from what a host is, by the table of the reference design. The role P(openipu.pod.common#role) loads them.
positional: _input
options:
  _input:
    description:
      - What the host is, some of V(controller), V(poplar), V(management) (it serves leases, names, time and a place for logs) and V(agent).
    type: list
    elements: str
    required: true
  networks:
    description: The networks V(bmc), V(gw), V(management), V(data) and V(storage), each with C(subnet), like the variable C(pod_networks).
    type: dict
    required: true
  interfaces:
    description: By network, the interface that the host has there. A network is told by its subnet, its interface, or both.
    type: dict
    default: {}
  peers:
    description:
      - Who else there is, as addresses or subnets, in C(dns_servers), C(management_servers), C(nfs_servers), C(controllers), C(poplar_servers),
        and C(agent_port) and C(controller_port).
      - Controllers and Poplar servers are everybody on the management network unless given.
    type: dict
    required: true
  allow:
    description:
      - What else may pass, each with C(ports), and perhaps C(direction) (V(in) or V(out)), C(protocol), C(network), C(sources) or, of what goes
        out, C(destinations), and C(why).
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Show what may pass
  ansible.builtin.debug:
    msg: "{{ ['controller'] | openipu.pod.firewall_rules(networks=pod_networks, interfaces={'gw': 'eno1'}, peers=peers) }}"
  vars:
    peers: {dns_servers: [10.1.2.101], agent_port: 8080, controller_port: 8090}
"""

RETURN = r"""
_value:
  description: The rules of the chains C(input) and C(output), each a line as C(nft) reads it.
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
) -> dict[str, list[str]]:
    try:
        return firewall(kinds, networks, interfaces or {}, peers, allow)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from None


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"firewall_rules": firewall_rules}
