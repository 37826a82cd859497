# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection options of the modules for Arista switches."""

from __future__ import annotations


class ModuleDocFragment:
    """Documentation fragment of the modules for Arista switches."""

    DOCUMENTATION = r"""
options:
  host:
    description:
      - Name or address of the switch. Its eAPI must be enabled (C(management api http-commands)).
      - Required unless O(openipu.pod.eos_pod#module:state=rendered).
    type: str
  port:
    description: TCP port of the eAPI. The default is 443, or 80 without O(use_ssl).
    type: int
  use_ssl:
    description: Whether to use HTTPS. HTTP transmits the password in clear text.
    type: bool
    default: true
  username:
    description:
      - User name.
      - Taken from the environment variable E(ANSIBLE_NET_USERNAME) when not given.
    type: str
  password:
    description:
      - Password of O(username).
      - Taken from the environment variable E(ANSIBLE_NET_PASSWORD) when not given.
    type: str
  enable_password:
    description:
      - Password for privileged mode, if the switch requires one.
      - Taken from the environment variable E(ANSIBLE_NET_AUTH_PASS) when not given.
    type: str
  validate_certs:
    description: Whether to verify the certificate of the switch.
    type: bool
    default: true
  ca_path:
    description: File with the CA certificates to verify the certificate of the switch. Omit to use those of the host of the task.
    type: path
  client_cert:
    description: File with the client certificate. Requires O(client_key).
    type: path
  client_key:
    description: File with the private key of O(client_cert).
    type: path
  timeout:
    description: Timeout of one request, in seconds.
    type: float
    default: 30.0
requirements:
  - pyeapi >= 1.0
notes:
  - Run the module with a local connection, on a host that can reach the management port of the switch.
"""
