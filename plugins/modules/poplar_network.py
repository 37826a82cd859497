#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bond the data ports of a Poplar server, with VLANs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: poplar_network
short_description: Bond the data ports of a Poplar server, with VLANs
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Configures a bond of two or more ports, with VLANs and their addresses, persistently, with systemd-networkd or NetworkManager. The backend
    manages no other interface, so another program can configure the rest of the network.
  - The module compares the running interfaces, not only their files. So a port that was removed from the bond is added again.
  - The management interface of the host is rejected as a member, as are interfaces with addresses and members of another bond.
  - When the interfaces do not reach the desired state, the previous configuration is restored immediately, and the task fails.
  - When the host is not reachable after a change, a timer of the host restores the previous configuration after O(rollback_timeout).
  - Names of the files begin with C(05-openipu-) and the name of the bond. VLANs that are not in O(vlans) are removed with their files.
extends_documentation_fragment:
  - openipu.pod.attributes.host
options:
  name:
    description: Name of the bond. VLAN interfaces are named after it and their ID, like C(bond0.11).
    type: str
    default: bond0
  members:
    description: Ports of the bond. Omit to use the two ports of the ConnectX card of the host.
    type: list
    elements: str
    default: []
  mode:
    description: Bonding mode. VF LAG of a ConnectX-5 supports all of them.
    type: str
    choices: [802.3ad, active-backup, balance-xor]
    default: 802.3ad
  lacp_rate:
    description: LACP rate that the host requests from the switch, for O(mode=802.3ad).
    type: str
    choices: [slow, fast]
    default: fast
  hash_policy:
    description: Transmit hash policy, which selects the port of a packet. Not used for O(mode=active-backup).
    type: str
    choices: [layer2, layer2+3, layer3+4]
    default: layer3+4
  mii_monitor:
    description: Interval of the link checks of ports, in milliseconds.
    type: int
    default: 100
  mtu:
    description: MTU of ports, bond and VLANs, in bytes.
    type: int
    default: 9000
  vlans:
    description: VLANs on the bond.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: VLAN ID.
        type: int
        required: true
      addresses:
        description: Addresses of the host in the VLAN, each with its prefix length.
        type: list
        elements: str
        default: []
  backend:
    description: Network backend.
    type: str
    choices: [networkd, networkmanager]
    default: networkd
  state:
    description:
      - V(present) configures the bond. After a change, the same task confirms it over a new request, which cancels the rollback timer.
        The next task with V(present) confirms it, too.
      - V(confirmed) only confirms the last change. Use it in a separate task after one with C(async), which does not confirm its change.
        It fails when the host has rolled the change back before.
    type: str
    choices: [present, confirmed]
    default: present
  wait_timeout:
    description: Timeout for the interfaces to reach the desired state, in seconds.
    type: int
    default: 60
  rollback_timeout:
    description: Time after which the host rolls back a change that was not confirmed, in seconds.
    type: int
    default: 120
notes:
  - Requires root, iproute2, systemd, and NetworkManager for O(backend=networkmanager).
  - O(mode), O(lacp_rate) and O(hash_policy) of an existing bond cannot be changed. When one of them differs, the bond is deleted, with all
    other interfaces on it, and created again.
"""

EXAMPLES = r"""
- name: Bond the ports of the ConnectX card, with VLANs for IPU data and storage
  openipu.pod.poplar_network:
    vlans:
      - {id: 11, addresses: [10.5.0.101/16]}
      - {id: 12, addresses: [10.6.0.101/16]}
  become: true

- name: Bond other ports on a host with NetworkManager
  openipu.pod.poplar_network:
    members: [enp65s0f0np0, enp65s0f1np1]
    backend: networkmanager
    vlans:
      - id: 12
        addresses: [10.6.0.102/16]
  become: true
"""

RETURN = r"""
name:
  description: Name of the bond.
  type: str
  returned: success
  sample: bond0
members:
  description: Ports of the bond.
  type: list
  elements: str
  returned: success
  sample: [enp65s0f0np0, enp65s0f1np1]
partner:
  description: MAC address of the LACP partner, that is, the switch. Empty without a partner.
  type: str
  returned: success
  sample: 28:99:3a:00:00:01
files:
  description: Result of the files, as lists of paths C(created), C(updated), C(removed) and C(unchanged).
  type: dict
  returned: success
bonds:
  description: Result of the running bond, as lists of names.
  type: dict
  returned: success
vlans:
  description: Result of the running VLANs, as lists of names.
  type: dict
  returned: success
"""

from ansible_collections.openipu.pod.plugins.module_utils.host.network_task import POPLAR_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(POPLAR_NETWORK)


if __name__ == "__main__":
    main()
