#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring an AWX to a description."""

from __future__ import annotations

DOCUMENTATION = r"""
module: awx_content
short_description: Bring an AWX to a description of its objects
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Reads a folder with YAML files, validates all entries, and applies them with the modules of the collection C(awx.awx) 24.6.1.
  - Secrets that AWX stores stay as they are, unless O(update_secrets) is set. Messages and results never contain secrets.
  - An object that is equal is not written. Different nodes of a workflow are replaced by new ones.
  - The role P(openipu.pod.awx_content#role) is the usual way to use this module.
extends_documentation_fragment:
  - openipu.pod.attributes
requirements:
  - collection C(awx.awx) 24.6.1 on the control node
options:
  folder:
    description:
      - Folder with the description, on the control node. All files below it with the suffix C(.yml), C(.yaml) or C(.json) are read.
      - A file sets variables such as C(controller_templates), each a list of dictionaries with the options of the module of C(awx.awx).
        Several files may set the same variable. Their entries are added.
      - Other variables in the files are settings for templates. Variables of the play override them.
    type: path
    required: true
  objects:
    description:
      - Additional lists of objects, by variable, such as C(controller_templates).
      - An entry replaces the one in the files with the same name, organization and other identifying options.
      - An entry with C(state=absent) removes its object.
    type: dict
    default: {}
  connection:
    description:
      - Connection options with the names of the modules of C(awx.awx) - C(controller_host), C(controller_oauthtoken), C(controller_username),
        C(controller_password), C(validate_certs) and C(request_timeout).
      - Omitted options come from the environment variables that these modules read, such as E(CONTROLLER_HOST) and
        E(CONTROLLER_OAUTH_TOKEN). Certificates are verified unless C(validate_certs) is false.
    type: dict
    default: {}
  state:
    description:
      - V(present) creates and updates all objects of the description.
      - V(absent) deletes them in the reverse order, and nothing else. An organization with other objects is kept. Labels have no deletion in
        the API of AWX.
    type: str
    choices: [present, absent]
    default: present
  existing:
    description:
      - Names of objects that AWX has and the description refers to, by variable, such as C(controller_organizations).
      - Built-in credential types, execution environments and instance groups are known.
    type: dict
    default: {}
  update_secrets:
    description: Write secrets even if AWX has stored ones. The task then reports a change on every run.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Apply the description to AWX
  openipu.pod.awx_content:
    folder: /etc/pod/awx
    connection:
      controller_host: https://awx.example.com
      controller_oauthtoken: "{{ awx_token }}"

- name: Remove the objects of the description
  openipu.pod.awx_content:
    folder: /etc/pod/awx
    state: absent
"""

RETURN = r"""
changes:
  description: Objects that changed, or would change in check mode, with the action.
  type: list
  elements: str
  returned: success
  sample: [created job template 'Bring-up', updated workflow template 'Drift']
kept:
  description: Objects that O(state=absent) did not delete, with the reason.
  type: list
  elements: str
  returned: success
  sample: ["organization 'IPU-POD': it still has inventory 'Lab'"]
error_code:
  description: Class of the error.
  type: str
  returned: failure
  sample: OPU100
"""
