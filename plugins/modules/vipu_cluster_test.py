#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the cables, links and settings of a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_cluster_test
short_description: Test the cables, links and settings of a V-IPU cluster
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Runs the tests of a cluster on the controller. Fails with a message that names the affected cables and machines.
  - Use the module as a gate before partitions are created. No test runs when the last run passed the same tests on the same agents with the same
    topology.
  - No test runs when the cluster has partitions and its last run did not fail. This does not apply when only tests that do not interrupt
    partitions are selected, such as V(Version).
  - With O(transport=cli) the state of the cluster during the last run is unknown, so a cluster without partitions is tested every time.
  - Both Graphcore's controller and the open controller keep their last run until they are restarted.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.vipu_group
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the tests that would run, without running any.
    support: full
  diff_mode:
    description: There is no diff, because no object changes.
    support: N/A
  idempotent:
    description: When run twice in a row without other changes in between, the second run starts no test.
    support: partial
    details:
      - A cluster that failed is tested again. A cluster without partitions is tested again after a restart of the controller and after a test of
        another cluster. With O(force=true) it is tested every time.
  platform:
    description: Where the module can run.
    platforms: posix
    support: full
options:
  cluster:
    description: Cluster to test. Optional with O(state=stopped).
    type: str
  tests:
    description:
      - Tests to run. Omit to run all tests except V(PFC-settings).
      - A test is skipped when a test that it depends on fails. V(Sync-Link), V(IPU-Link), V(Traffic) and V(GW-Link) would interrupt partitions and
        are skipped while there are any. A single selected test always runs.
    type: list
    elements: str
    choices: [Sync-Link, Cabling, IPU-Link, Traffic, GW-Link, Version, PFC-settings]
  state:
    description:
      - V(tested) runs the tests and waits for the results.
      - V(started) starts the tests without waiting. M(openipu.pod.vipu_cluster_test_info) returns their progress.
      - V(stopped) stops the running test, limited to O(cluster) if it is set.
    type: str
    choices: [tested, started, stopped]
    default: tested
  force:
    description:
      - Test even if the cluster passed these tests before or has partitions.
      - The controller still skips tests that would interrupt partitions, with a warning, except for a single selected test.
    type: bool
    default: false
  fail_on_failure:
    description: Whether the task fails when a test fails. If not, check RV(ok). RV(msg) has the message of the failure.
    type: bool
    default: true
  wait_timeout:
    description: Timeout for the results, in seconds. The test continues after the timeout.
    type: float
    default: 1800
seealso:
  - module: openipu.pod.vipu_cluster_test_info
  - module: openipu.pod.vipu_cluster
"""

EXAMPLES = r"""
- name: Test the cluster and fail on faults
  openipu.pod.vipu_cluster_test:
    api_host: 10.3.1.101
    cluster: cl0

- name: Test the settings of the RNICs
  openipu.pod.vipu_cluster_test:
    api_host: 10.3.1.101
    cluster: cl0
    tests: [PFC-settings]
    force: true

- name: Start all tests
  openipu.pod.vipu_cluster_test:
    api_host: 10.3.1.101
    cluster: cl0
    state: started
    force: true

- name: Wait for the results
  openipu.pod.vipu_cluster_test_info:
    api_host: 10.3.1.101
  register: test
  until: test.run.state != 'running'
  retries: 60
  delay: 10

- name: Stop the running test
  openipu.pod.vipu_cluster_test:
    api_host: 10.3.1.101
    state: stopped
"""

RETURN = r"""
ok:
  description: Whether all tests passed; null when partitions prevented the tests.
  type: bool
  returned: with O(state=tested), except in check mode
  sample: false
msg:
  description: Message that names the failed tests with the affected cables and machines.
  type: str
  returned: when a test failed
  sample: "Cluster 'cl0' did not pass its tests: Cabling 15/16 (ag01:5 <--> ag02:1: wrong port)."
skipped_reason:
  description: Reason why no test ran.
  type: str
  returned: when no test ran
  sample: Cluster 'cl0' passed these tests and has not changed since.
would_run:
  description: The tests that would run.
  type: list
  elements: str
  returned: in check mode, when tests would run
  sample: [Cabling, Version]
run:
  description: The last run of tests; null when there was none or it tested another cluster.
  type: dict
  returned: except in check mode
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
failures:
  description: Failures of all tests.
  type: list
  elements: dict
  returned: except in check mode
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

from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.cluster_test_task import VIPU_CLUSTER_TEST
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_CLUSTER_TEST)


if __name__ == "__main__":
    main()
