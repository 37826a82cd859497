# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection options of the modules for power distribution units."""

from __future__ import annotations


class ModuleDocFragment:
    """Documentation fragment of the modules for power distribution units."""

    DOCUMENTATION = r"""
options:
  host:
    description: Name or address of the PDU.
    type: str
    required: true
  port:
    description: UDP port of the SNMP agent of the PDU.
    type: int
    default: 161
  version:
    description:
      - SNMP version.
      - V(v3) uses O(username) and keys. V(v2c) uses O(community), which it transmits in clear text.
    type: str
    choices: [v3, v2c]
    default: v3
  username:
    description: SNMPv3 user name. Required for O(version=v3).
    type: str
  security_level:
    description: Whether requests of O(version=v3) are authenticated and encrypted, only authenticated, or neither.
    type: str
    choices: [auth_priv, auth_no_priv, no_auth_no_priv]
    default: auth_priv
  auth_protocol:
    description: Authentication protocol.
    type: str
    choices: [md5, sha, sha224, sha256, sha384, sha512]
    default: sha
  auth_key:
    description: Authentication pass phrase, at least 8 characters. Required unless O(security_level=no_auth_no_priv).
    type: str
  priv_protocol:
    description: Encryption protocol. V(aes) has 128 bits.
    type: str
    choices: [des, aes, aes192, aes256]
    default: aes
  priv_key:
    description: Encryption pass phrase, at least 8 characters. Required for O(security_level=auth_priv).
    type: str
  context:
    description: SNMPv3 context. PDUs support only the empty context.
    type: str
    default: ''
  community:
    description: Community. Required for O(version=v2c).
    type: str
  write_community:
    description: Community with write access. Omit to use O(community).
    type: str
  timeout:
    description: Timeout of one response, in seconds.
    type: float
    default: 2.0
  retries:
    description: Number of retries of a request without a response.
    type: int
    default: 3
requirements:
  - pysnmp >= 7.1.8
  - cryptography, for O(security_level=auth_priv)
notes:
  - Run the module with a local connection, on a host that can reach the management port of the PDU.
  - Supports APC's Rack PDUs with the tables rPDU2 of the PowerNet-MIB.
"""
