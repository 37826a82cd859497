#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Return the results of the last cluster test."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_cluster_test_info
short_description: Return the results of the last cluster test
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Returns the last run of cluster tests of the controller, of any cluster, running or finished.
  - RV(runs) has the last run of each cluster. A controller keeps them until it is restarted.
  - The controller of the vendor keeps only its last run of all clusters.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu_group
seealso:
  - module: openipu.pod.vipu_cluster_test
"""

EXAMPLES = r"""
- name: Get the last test
  openipu.pod.vipu_cluster_test_info:
    api_host: 10.3.1.101
  register: test

- name: Show the failures
  ansible.builtin.debug:
    msg: "{{ test.failures | map(attribute='reason') | list }}"
"""

RETURN = r"""
run:
  description: The last run of tests; null when there was none.
  type: dict
  returned: success
  contains:
    state:
      description: One of running, finished, stopped and aborted.
      type: str
      sample: finished
    ok:
      description: Whether the run finished without failures. Tests skipped to avoid interrupting partitions do not count as failed.
      type: bool
      sample: false
    cluster:
      description: The tested cluster.
      type: str
      sample: cl0
    agents:
      description: Agents of the cluster at that time, in order; null with O(transport=cli).
      type: list
      elements: str
      sample: [ag01, ag02, ag03, ag04]
    num_ilds:
      description: Number of IPU-Link domains; null with O(transport=cli).
      type: int
      sample: 1
    topology:
      description: Cabling of the IPU-Links; null with O(transport=cli).
      type: str
      sample: torus
    run_id:
      description: ID of the run; null with O(transport=cli).
      type: str
      sample: 9d1f0c2a77b3e054
    requested:
      description: The tests of the run.
      type: list
      elements: str
      sample: [Cabling]
    running:
      description: The running test.
      type: str
      sample: null
    error:
      description: Cause of the abort.
      type: str
      sample: null
    started:
      description: Start in seconds since 1970; null with O(transport=cli).
      type: int
      sample: 1772366360
    ended:
      description: End in seconds since 1970; null with O(transport=cli).
      type: int
      sample: 1772366361
    results:
      description: Results of the finished tests.
      type: list
      elements: dict
      contains:
        test:
          description: The test.
          type: str
          sample: Cabling
        duration:
          description: Duration in seconds.
          type: float
          sample: 0.012
        passed:
          description: Number of cables, links, windows of the traffic test, components or machines that passed.
          type: int
          sample: 15
        total:
          description: Number of tested items of that kind.
          type: int
          sample: 16
        ok:
          description: Whether the test passed.
          type: bool
          sample: false
        summary:
          description: The printed lines.
          type: list
          elements: str
          sample: ["ag01:5 [IPU-Link] <--> ag02:1 [IPU-Link] (failed)"]
        skipped:
          description: Whether the test was skipped.
          type: bool
          sample: false
        skipped_because:
          description: Failed test that caused the skip.
          type: str
          sample: null
        disturbs:
          description: Partitions that the test would have interrupted.
          type: list
          elements: str
          sample: []
        failures:
          description: One failure per cable, link, component or machine, in the form of RV(failures) without C(test).
          type: list
          elements: dict
          sample: []
        versions:
          description: Versions by component and agent from the version test; empty with O(transport=cli).
          type: dict
          sample: {Virm: {ag01: 1.18.0, ag02: 1.18.0}}
runs:
  description:
    - The last run of each cluster, in the form of RV(run), by cluster. RV(run) is one of them.
    - With O(transport=cli), RV(run) only.
  type: list
  elements: dict
  returned: success
  sample: []
failures:
  description: Failures of all tests in RV(run).
  type: list
  elements: dict
  returned: success
  contains:
    test:
      description: The test with the failure.
      type: str
      sample: Cabling
    kind:
      description:
        - One of no_cable, wrong_port, no_sync, link_down, corrected_errors, version, pfc_classes and agent_unreachable.
        - Null for a printed line in an unknown form.
      type: str
      sample: wrong_port
    reason:
      description: Description of the failure.
      type: str
      sample: The cable CBL1 in ag01:5 leads to ag03:7; there is no cable in ag02:1.
    a:
      description: The port at one end of a cable or link, with C(agent), C(kind) and C(port).
      type: dict
      sample: {agent: ag01, kind: IPU-Link, port: 5}
    b:
      description: The port at the other end.
      type: dict
      sample: {agent: ag02, kind: IPU-Link, port: 1}
    found:
      description: Actual port at the other end of the cable in RV(failures[].a); null with O(transport=cli).
      type: dict
      sample: {agent: ag03, kind: IPU-Link, port: 7}
    found_b:
      description: Actual port at the other end of the cable in RV(failures[].b); null with O(transport=cli).
      type: dict
      sample: null
    empty:
      description: Whether RV(failures[].a) has no cable; always false with O(transport=cli).
      type: bool
      sample: false
    empty_b:
      description: Whether RV(failures[].b) has no cable; always false with O(transport=cli).
      type: bool
      sample: true
    agent:
      description: The agent of a failure inside one machine.
      type: str
      sample: null
    link:
      description: An internal link of that machine.
      type: str
      sample: null
    corrected_errors:
      description: Number of errors that a link corrected.
      type: int
      sample: null
    traffic_test:
      description: Number of the window of the traffic test with the corrected errors, from 1.
      type: int
      sample: null
    component:
      description: A component with different versions.
      type: str
      sample: null
    versions:
      description: Version of the component by agent.
      type: dict
      sample: {}
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.cluster_test_info_task import (
    VIPU_CLUSTER_TEST_INFO,
)
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_CLUSTER_TEST_INFO)


if __name__ == "__main__":
    main()
