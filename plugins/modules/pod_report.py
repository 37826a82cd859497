#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the report of a POD."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_report
short_description: Write a report of PODs with their cables, tests and partitions
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Writes one self-contained HTML file. It shows the racks with their machines, the cables with their test results, actions for a technician, the
    tests, the partition of each IPU, and devices with problems.
  - The page is rendered on the control node and copied with M(ansible.builtin.copy).
  - Equal input gives an equal page, so a second run changes nothing.
extends_documentation_fragment:
  - openipu.pod.attributes
options:
  dest:
    description: Path of the file, or of a folder for a file C(report.html).
    type: path
    required: true
  pod:
    description: Path of C(pod.yml) on the control node, to draw all devices of the racks. The inventory plugin sets the variable
      C(pod_file). Omit to draw only the IPU-Machines of clusters and agents.
    type: path
  info:
    description:
      - Result of M(openipu.pod.vipu_info) with agents, clusters, allocations and partitions. If it has C(ipu_attributes), the report shows versions.
      - Omit to draw no partitions.
    type: dict
  test_run:
    description:
      - Value C(runs) or C(run) of the result of M(openipu.pod.vipu_cluster_test_info). Of several runs of a cluster, the last one counts.
      - Alternatively, the path of a JSON file on the control node with that value or with the output of C(vipu-admin --output json test cluster).
      - Omit to draw no test results. At least one of O(pod), O(info), O(test_run) and O(pods) is required.
    type: raw
  pdus:
    description:
      - Mapping from names of PDUs to results of M(openipu.pod.pdu_info). A failed result shows the PDU as not readable, with its message.
      - Omit to show no load and no alarms of PDUs.
    type: dict
  pods:
    description:
      - Several PODs, for one page with an overview and all of them. Equal names in two PODs do not collide.
      - Replaces O(pod), O(info), O(test_run) and O(pdus).
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the POD. The default is the name in C(pod.yml).
        type: str
      failure:
        description: Message of a failed read of the controller. The page shows it, and draws the POD from O(pods[].pod).
        type: str
      pod:
        description: As O(pod).
        type: path
      info:
        description: As O(info).
        type: dict
      test_run:
        description: As O(test_run). At least one of O(pods[].pod), O(pods[].info) and O(pods[].test_run) is required.
        type: raw
      pdus:
        description: As O(pdus).
        type: dict
  mode:
    description: Permissions of the file.
    type: raw
    default: "0644"
  owner:
    description: Owner of the file. Omit to leave it unchanged.
    type: str
  group:
    description: Group of the file. Omit to leave it unchanged.
    type: str
  backup:
    description: Whether to keep a backup of the previous file.
    type: bool
    default: false
attributes:
  platform:
    platforms: all
  check_mode:
    details: [The page is rendered and compared with the existing file.]
seealso:
  - module: openipu.pod.pdu_info
  - module: openipu.pod.vipu_cluster_test
  - module: openipu.pod.vipu_info
"""

EXAMPLES = r"""
- name: Get the objects of the controller
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [agents, clusters, allocations, partitions, ipu_attributes]
  register: controller

- name: Get the last test
  openipu.pod.vipu_cluster_test_info:
    api_host: 10.3.1.101
  register: tests

- name: Write the report
  openipu.pod.pod_report:
    dest: /srv/www/rack.html
    pod: inventory/pod64/pod.yml
    info: "{{ controller }}"
    test_run: "{{ tests.runs }}"

- name: Write one report of two PODs
  openipu.pod.pod_report:
    dest: /srv/www/racks.html
    pods:
      - pod: pods/north/pod.yml
        info: "{{ north }}"
        test_run: "{{ north_tests.runs }}"
      - pod: pods/south/pod.yml
        failure: "Cannot get the version: the V-IPU controller at 10.2.3.101:8090 does not respond."

- name: Write a report of saved test results
  openipu.pod.pod_report:
    dest: rack.html
    test_run: results.json
"""

RETURN = r"""
dest:
  description: Path of the written file.
  type: str
  returned: success
  sample: /srv/www/rack.html
actions:
  description: Actions for a technician from the test results, in the recommended order. With several PODs, each starts with the name of its POD.
  type: list
  elements: str
  returned: always
  sample: ["Connect ag03:7 and ag04:3 with a cable."]
"""
