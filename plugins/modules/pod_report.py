#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw the report of a POD."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_report
short_description: Draw a POD with its cables, tests and partitions
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Makes one HTML file that needs no network. It shows the racks with every machine, the cables in their ports with what the tests say of
    them, what a technician has to do, the tests, and who has which IPU.
  - The page is made on the control node, and brought to its place as M(ansible.builtin.copy) does.
  - The same input gives the same page, so a second run changes nothing.
extends_documentation_fragment:
  - openipu.pod.attributes
options:
  dest:
    description: The file, or the folder for a file of the name C(report.html).
    type: path
    required: true
  pod:
    description: The C(pod.yml) of the POD on the control node, for racks with all that stands in them. Hosts of the inventory have it as C(pod_file).
    type: path
  info:
    description: What M(openipu.pod.vipu_info) returned, for agents, clusters, allocations and partitions; with C(ipu_attributes), for versions.
    type: dict
  test_run:
    description:
      - What M(openipu.pod.vipu_cluster_test_info) returned as C(run).
      - Or the path of a JSON file on the control node, with that or with what C(vipu-admin --output json test cluster) prints.
    type: raw
  mode:
    description: Permissions of the file.
    type: raw
    default: "0644"
  owner:
    description: Owner of the file.
    type: str
  group:
    description: Group of the file.
    type: str
  backup:
    description: Whether to keep the file that was there before, under another name.
    type: bool
    default: false
attributes:
  platform:
    platforms: all
  check_mode:
    details: [The page is made, and compared with the one that is there.]
seealso:
  - module: openipu.pod.vipu_cluster_test
  - module: openipu.pod.vipu_info
"""

EXAMPLES = r"""
- name: Ask for everything there is
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [agents, clusters, allocations, partitions, ipu_attributes]
  register: controller

- name: Ask for the last test
  openipu.pod.vipu_cluster_test_info:
    api_host: 10.3.1.101
  register: tests

- name: Draw it
  openipu.pod.pod_report:
    dest: /srv/www/rack.html
    pod: inventory/pod64/pod.yml
    info: "{{ controller }}"
    test_run: "{{ tests.run }}"

- name: Draw what was tested last month
  openipu.pod.pod_report:
    dest: rack.html
    test_run: results.json
"""

RETURN = r"""
dest:
  description: The file.
  type: str
  returned: success
  sample: /srv/www/rack.html
"""
