#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bonded data ports of a Poplar server, with VLANs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: poplar_network
short_description: The bonded data ports of a Poplar server, with VLANs
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Makes a bond of two or more ports, with VLANs and their addresses, now and for every boot, with systemd-networkd or NetworkManager. Neither
    looks at any other interface, so the rest of the host's network may be configured by whatever it is.
  - The interfaces are compared as they run and not only as they are configured. So a port that somebody has taken out of the bond comes back.
  - The interface by which the host is managed is refused as a member, as is one that has addresses, or is in another bond.
  - When the interfaces do not come up as they are wanted, the former configuration is back at once, and the task fails. When the host can no
    longer be reached after a change, it is back after O(return_timeout), by a timer of the host itself.
  - The files begin with C(05-openipu-) and the name of the bond; VLANs that are asked for no more are removed with theirs.
extends_documentation_fragment:
  - openipu.pod.attributes.host
options:
  name:
    description: The name of the bond. VLANs are called like it and their number, C(bond0.11).
    type: str
    default: bond0
  members:
    description: The ports. The two of the host's ConnectX unless given.
    type: list
    elements: str
    default: []
  mode:
    description: How they are bundled. VF LAG of a ConnectX-5 works with all of these.
    type: str
    choices: [802.3ad, active-backup, balance-xor]
    default: 802.3ad
  lacp_rate:
    description: How often the switch is to send, with O(mode=802.3ad).
    type: str
    choices: [slow, fast]
    default: fast
  hash_policy:
    description: By what a port is chosen for a packet, but with O(mode=active-backup).
    type: str
    choices: [layer2, layer2+3, layer3+4]
    default: layer3+4
  mii_monitor:
    description: How often ports are looked at, in milliseconds.
    type: int
    default: 100
  mtu:
    description: The largest packet on ports, bond and VLANs.
    type: int
    default: 9000
  vlans:
    description: The VLANs.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: Its number.
        type: int
        required: true
      addresses:
        description: The host's addresses in it, each with the length of its prefix.
        type: list
        elements: str
        default: []
  backend:
    description: Who configures it.
    type: str
    choices: [networkd, networkmanager]
    default: networkd
  state:
    description:
      - With V(present) it is made. When something changed, the timer is stopped by the same task as soon as the host has answered once more.
      - V(kept) stops it and does nothing else, for a task after one with C(async), which cannot tell that the host answers.
    type: str
    choices: [present, kept]
    default: present
  wait_timeout:
    description: How long the interfaces have for coming up, in seconds.
    type: int
    default: 60
  return_timeout:
    description: After how long the host takes a change back that nobody could say to keep, in seconds.
    type: int
    default: 120
notes:
  - Needs root, iproute2, systemd, and NetworkManager for its backend.
  - What a bond or a VLAN is cannot be changed while it is there. With another O(mode), O(lacp_rate) or O(hash_policy) the bond is made anew, and
    whatever else is on it goes.
"""

EXAMPLES = r"""
- name: Bond the ConnectX, with the networks for IPU data and storage
  openipu.pod.poplar_network:
    vlans:
      - {id: 11, addresses: [10.5.0.101/16]}
      - {id: 12, addresses: [10.6.0.101/16]}
  become: true

- name: Bond ports that are named, on a host with NetworkManager, for VMs that have their own addresses
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
  description: The bond.
  type: str
  returned: success
  sample: bond0
members:
  description: Its ports.
  type: list
  elements: str
  returned: success
  sample: [enp65s0f0np0, enp65s0f1np1]
partner:
  description: The address of the switch that bundles them at the other end, empty when none does.
  type: str
  returned: success
  sample: 28:99:3a:00:00:01
files:
  description: What was done to files, as lists of paths under C(created), C(updated), C(removed) and C(unchanged).
  type: dict
  returned: success
bonds:
  description: The same for the bond as it runs.
  type: dict
  returned: success
vlans:
  description: The same for VLANs as they run.
  type: dict
  returned: success
"""

from ansible_collections.openipu.pod.plugins.module_utils.host.network_task import POPLAR_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(POPLAR_NETWORK)


if __name__ == "__main__":
    main()
