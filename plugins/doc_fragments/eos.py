# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection options of the modules for Arista switches."""

from __future__ import annotations


class ModuleDocFragment:
    """See the module."""

    DOCUMENTATION = r"""
options:
  host:
    description: Name or address of the switch; its eAPI has to be on (C(management api http-commands)).
    type: str
  port:
    description: TCP port of its eAPI, 443 unless given, or 80 without O(use_ssl).
    type: int
  use_ssl:
    description: Speak HTTPS. Without, everybody on the way can read the password.
    type: bool
    default: true
  username:
    description:
      - Who asks.
      - Taken from the environment variable E(ANSIBLE_NET_USERNAME) when not given.
    type: str
  password:
    description:
      - The password of O(username).
      - Taken from the environment variable E(ANSIBLE_NET_PASSWORD) when not given.
    type: str
  enable_password:
    description:
      - The password for privileged mode, when the switch wants one.
      - Taken from the environment variable E(ANSIBLE_NET_AUTH_PASS) when not given.
    type: str
  validate_certs:
    description: Check the certificate of the switch.
    type: bool
    default: true
  ca_path:
    description: File with the certificates of the authorities that it is checked against, instead of those of the host of the task.
    type: path
  client_cert:
    description: File with the certificate that this client shows. Goes together with O(client_key).
    type: path
  client_key:
    description: File with the private key of O(client_cert).
    type: path
  timeout:
    description: How many seconds one request may take.
    type: float
    default: 30.0
requirements:
  - pyeapi >= 1.0
notes:
  - Run it with a local connection, from a host that reaches the management port of the switch.
"""
