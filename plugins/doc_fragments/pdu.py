# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection options of the modules for power distribution units."""

from __future__ import annotations


class ModuleDocFragment:
    """See the module."""

    DOCUMENTATION = r"""
options:
  host:
    description: Name or address of the PDU.
    type: str
    required: true
  port:
    description: UDP port of its SNMP agent.
    type: int
    default: 161
  version:
    description:
      - The version of SNMP.
      - V(v3) takes O(username) and keys. V(v2c) takes O(community), and everybody on the way can read it.
    type: str
    choices: [v3, v2c]
    default: v3
  username:
    description: The SNMPv3 user. Needed for O(version=v3).
    type: str
  security_level:
    description: Whether requests of O(version=v3) are signed and encrypted, signed, or neither.
    type: str
    choices: [auth_priv, auth_no_priv, no_auth_no_priv]
    default: auth_priv
  auth_protocol:
    description: How requests are signed.
    type: str
    choices: [md5, sha, sha224, sha256, sha384, sha512]
    default: sha
  auth_key:
    description: The pass phrase that requests are signed with, at least 8 characters.
    type: str
  priv_protocol:
    description: How requests are encrypted. V(aes) has 128 bits.
    type: str
    choices: [des, aes, aes192, aes256]
    default: aes
  priv_key:
    description: The pass phrase that requests are encrypted with, at least 8 characters.
    type: str
  context:
    description: The SNMPv3 context. PDUs have none but the empty one.
    type: str
    default: ''
  community:
    description: The community of O(version=v2c).
    type: str
  write_community:
    description: The community that may write, when that is another one than O(community).
    type: str
  timeout:
    description: How many seconds an answer may take.
    type: float
    default: 2.0
  retries:
    description: How often a request is sent again when no answer came.
    type: int
    default: 3
requirements:
  - pysnmp >= 7.1.8
  - cryptography, for O(security_level=auth_priv)
notes:
  - Run it with a local connection, from a host that reaches the management port of the PDU.
  - What it knows are APC's Rack PDUs with the tables rPDU2 of the PowerNet-MIB.
"""
