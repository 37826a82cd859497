#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage a user of a V-IPU controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_user
short_description: Manage a user of a V-IPU controller
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Creates a user of a controller with user management, changes its role and allocations, or removes it.
  - The controller returns the access key of a new user only once. It is written to O(config_dest) and never appears in results, logs or diffs.
  - Issues, renews and revokes client certificates of the user. The private key is made on the host of the task and never leaves it.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu_group
options:
  id:
    description: ID of the user.
    type: str
    required: true
  role:
    description:
      - V(admin) has full access, V(user) has access to the partitions of its allocations.
      - Omit to use V(user) for a new user.
    type: str
    choices: [user, admin]
  allocations:
    description:
      - Allocations that the user may use. V([]) means none, V(['*']) means all present and future ones.
      - Omit to leave them unchanged. A new user then may use all allocations, as in Graphcore's guide, and the task returns a warning. A new
        administrator needs no allocations and has none.
    type: list
    elements: str
  state:
    description:
      - V(present) makes sure that the user exists with these options.
      - V(absent) makes sure that it does not exist.
    type: str
    choices: [present, absent]
    default: present
  config_dest:
    description:
      - File for the access key of a new user on the host of the task, readable by its owner only, in the format of
        C(vipu --config).
      - If this is an existing folder, the file is C(<id>.vipu-cli.hcl) in that folder.
      - Required with O(state=present). The file of an existing user changes only to refer to a certificate.
    type: path
  certificate:
    description:
      - Whether the user has their own certificate, as C(<id>.crt) and C(<id>.key) in the folder of O(config_dest), with mode 0600.
      - A certificate is issued if there is none for the key, if it expires within O(certificate_renew_within) days, or if it was revoked. An existing
        key is used again, unless it was revoked. O(config_dest) then refers to these files.
      - From its first certificate on, a user can call only with certificates of its own.
      - Omit to issue one for a new user if the controller requires it, and to renew one whose files exist.
      - With V(false), O(config_dest) of a new user that needs a certificate does not refer to one. Calls of the user fail until a certificate exists.
      - Requires O(transport=grpc), a secure controller, and the Python library C(cryptography) on the host of the task.
    type: bool
  certificate_renew_within:
    description: Days until expiry. A certificate that expires earlier is renewed.
    type: int
    default: 30
  revoked_certificates:
    description:
      - Key fingerprints of certificates to revoke, as in RV(certificates), or their first digits, at least 8. The next call with such a certificate is
        rejected.
      - When the certificate on the host of the task is one of them, a new key and certificate replace it.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Create a user for a team
  openipu.pod.vipu_user:
    api_host: 10.3.1.101
    id: alice
    allocations: [team-a]
    config_dest: ~/alice.vipu-cli.hcl

- name: Give an existing user their own certificate
  openipu.pod.vipu_user:
    api_host: 10.3.1.101
    id: bob
    config_dest: ~/bob.vipu-cli.hcl
    certificate: true

- name: Revoke a stolen certificate
  openipu.pod.vipu_user:
    api_host: 10.3.1.101
    id: alice
    config_dest: ~/alice.vipu-cli.hcl
    revoked_certificates: [6b3a55e0261b0304143f805a24924d0c1c44524821305f31d9277843b8a10f4e]
"""

RETURN = r"""
user:
  description: The user after the task, in check mode the predicted user; null after a removal.
  type: dict
  returned: success
  sample: {id: alice, role: user, allocations: [team-a]}
config_dest:
  description: The file with the access key of a new user.
  type: str
  returned: when O(config_dest) is set
  sample: /home/admin/alice.vipu-cli.hcl
certificates:
  description: All certificates of the user after the task, in check mode the predicted ones. Unknown values of a predicted one are null.
  type: list
  elements: dict
  returned: when the task manages certificates
  contains:
    key:
      description: Key fingerprint, the SHA-256 hash of the public key in hex. A renewed certificate keeps it.
      type: str
    serial:
      description: Serial number, in hex.
      type: str
    valid_until:
      description: Last day of validity (UTC).
      type: str
    revoked:
      description: Whether it was revoked. Such a certificate is never accepted again. It stays in the list, even after the user was removed and created again.
      type: bool
  sample:
    - key: 6b3a55e0261b0304143f805a24924d0c1c44524821305f31d9277843b8a10f4e
      serial: 2f1c9a
      valid_until: "2029-02-25"
      revoked: false
client_cert:
  description: File of the certificate on the host of the task.
  type: str
  returned: when the task manages certificates
  sample: /home/admin/alice.crt
client_key:
  description: File of the private key on the host of the task.
  type: str
  returned: when the task manages certificates
  sample: /home/admin/alice.key
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.user_task import VIPU_USER


def main() -> None:
    run_module(VIPU_USER)


if __name__ == "__main__":
    main()
