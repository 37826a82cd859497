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
  - Has the controller test a cluster, and fails when something is wrong, with a sentence that names the cables and machines.
  - It is a gate before partitions, so it runs once for a cluster as it is. Nothing runs when the controller's last test was a pass of these
    tests on the same agents in the same topology, or when the cluster has partitions already and its last test found nothing wrong. Tests that
    disturb nobody, named without others, run beside partitions too.
  - With O(transport=cli) nobody tells what a cluster was like when it was tested, so one without partitions is tested every time.
  - Graphcore's controller and the open one remember their last test until they are restarted.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.vipu
attributes:
  check_mode:
    description: Can run in C(check_mode) and say which tests would run, without running any.
    support: full
  diff_mode:
    description: There is nothing to show, since no object changes.
    support: N/A
  idempotent:
    description: When run twice in a row without something else changing in between, the second run tests nothing.
    support: partial
    details:
      - A cluster that fails is tested again, and so is one without partitions whose controller was restarted, or has tested another cluster
        since. With O(force=true) it is tested every time.
  platform:
    description: Where the module can run.
    platforms: posix
    support: full
options:
  cluster:
    description: The cluster. To stop a test it may be left out.
    type: str
  tests:
    description:
      - The tests; all but V(PFC-settings) when none is named.
      - One that depends on another is skipped when that fails, and V(Sync-Link), V(IPU-Link), V(Traffic) and V(GW-Link) are skipped while
        there are partitions, which they would disturb. A test that is named alone runs in any case.
    type: list
    elements: str
    choices: [Sync-Link, Cabling, IPU-Link, Traffic, GW-Link, Version, PFC-settings]
  state:
    description:
      - V(tested) tests, and waits for the results.
      - V(started) starts the tests and does not wait; M(openipu.pod.vipu_cluster_test_info) tells how they go.
      - V(stopped) stops the test that is in progress, of O(cluster) when it is given.
    type: str
    choices: [tested, started, stopped]
    default: tested
  force:
    description:
      - Test whether or not it is needed.
      - The controller still leaves out what would disturb partitions, of which the task warns, unless one test is chosen alone.
    type: bool
    default: false
  fail_on_failure:
    description: Whether the task fails when a test does. Otherwise look at RV(ok).
    type: bool
    default: true
  wait_timeout:
    description: How many seconds to wait for the results. The test goes on when they are over.
    type: float
    default: 1800
seealso:
  - module: openipu.pod.vipu_cluster_test_info
  - module: openipu.pod.vipu_cluster
"""

EXAMPLES = r"""
- name: Stop here unless all cables are right
  openipu.pod.vipu_cluster_test:
    api_host: 10.3.1.101
    cluster: cl0

- name: Look at the settings of the RNICs, whatever was tested before
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

- name: Wait for them
  openipu.pod.vipu_cluster_test_info:
    api_host: 10.3.1.101
  register: test
  until: test.run.state != 'running'
  retries: 60
  delay: 10

- name: Stop whatever test is in progress
  openipu.pod.vipu_cluster_test:
    api_host: 10.3.1.101
    state: stopped
"""

RETURN = r"""
ok:
  description: Whether nothing is wrong; none when that is not known, because partitions kept the tests from running.
  type: bool
  returned: with O(state=tested), except in check mode
  sample: false
skipped_reason:
  description: Why nothing was tested.
  type: str
  returned: when nothing was tested
  sample: Cluster 'cl0' passed these tests, and is the same since.
would_run:
  description: The tests that would run.
  type: list
  elements: str
  returned: in check mode, when some would
  sample: [Cabling, Version]
run:
  description: The last run of tests that the controller knows; none when there was none, or none of this cluster.
  type: dict
  returned: except in check mode
  contains:
    state:
      description: One of running, finished, stopped and aborted.
      type: str
      sample: finished
    ok:
      description: Whether it finished, and found nothing wrong. Tests that were left out so as not to disturb partitions are not wrong.
      type: bool
      sample: false
    cluster:
      description: The cluster that was tested.
      type: str
      sample: cl0
    agents:
      description: Its agents at that time, in their order; none with O(transport=cli).
      type: list
      elements: str
      sample: [ag01, ag02, ag03, ag04]
    num_ilds:
      description: Its number of IPU-Link domains; none with O(transport=cli).
      type: int
      sample: 1
    topology:
      description: How its IPU-Links are cabled; none with O(transport=cli).
      type: str
      sample: torus
    run_id:
      description: The name of the run; none with O(transport=cli).
      type: str
      sample: 9d1f0c2a77b3e054
    asked:
      description: The tests that the run is made of.
      type: list
      elements: str
      sample: [Cabling]
    running:
      description: The test that runs now.
      type: str
      sample: null
    error:
      description: Why it was aborted.
      type: str
      sample: null
    started:
      description: When it began, in seconds since 1970; none with O(transport=cli).
      type: int
      sample: 1772366360
    ended:
      description: When it was over.
      type: int
      sample: 1772366361
    results:
      description: One for each test that is done.
      type: list
      elements: dict
      contains:
        test:
          description: The test.
          type: str
          sample: Cabling
        duration:
          description: How long it took, in seconds.
          type: float
          sample: 0.012
        passed:
          description: How many cables, links, windows, components or machines are right.
          type: int
          sample: 15
        total:
          description: How many there are.
          type: int
          sample: 16
        ok:
          description: Whether nothing is wrong.
          type: bool
          sample: false
        summary:
          description: The lines as they are printed.
          type: list
          elements: str
          sample: ["ag01:5 [IPU-Link] <--> ag02:1 [IPU-Link] (failed)"]
        skipped:
          description: Whether it did not run.
          type: bool
          sample: false
        skipped_because:
          description: The test whose failure is the reason for that.
          type: str
          sample: null
        disturbs:
          description: The partitions that are the reason for that.
          type: list
          elements: str
          sample: []
        failures:
          description: What is wrong, one for each cable, link, component or machine; as RV(failures), without C(test).
          type: list
          elements: dict
          sample: []
        versions:
          description: By component and agent, the versions that the version test read; with O(transport=cli) there are none.
          type: dict
          sample: {Virm: {ag01: 1.18.0, ag02: 1.18.0}}
failures:
  description: Everything that is wrong, of all tests.
  type: list
  elements: dict
  returned: except in check mode
  contains:
    test:
      description: The test that found it.
      type: str
      sample: Cabling
    kind:
      description:
        - One of no_cable, wrong_port, no_sync, link_down, corrected_errors, version, pfc_classes and agent_unreachable.
        - None for a line that the command printed and nobody knows.
      type: str
      sample: wrong_port
    reason:
      description: A sentence.
      type: str
      sample: The cable CBL1 in ag01 IPU-Link port 5 leads to ag03 IPU-Link port 7; there is no cable in ag02 IPU-Link port 1.
    a:
      description: The port at one end of a cable or link, with C(agent), C(kind) and C(port).
      type: dict
      sample: {agent: ag01, kind: IPU-Link, port: 5}
    b:
      description: The port at the other end.
      type: dict
      sample: {agent: ag02, kind: IPU-Link, port: 1}
    found:
      description: Where the cable in RV(failures[].a) leads to instead; none with O(transport=cli).
      type: dict
      sample: {agent: ag03, kind: IPU-Link, port: 7}
    found_b:
      description: Where the cable in RV(failures[].b) leads to instead; none with O(transport=cli).
      type: dict
      sample: null
    empty:
      description: Whether no cable is in RV(failures[].a); never told with O(transport=cli).
      type: bool
      sample: false
    empty_b:
      description: Whether no cable is in RV(failures[].b); never told with O(transport=cli).
      type: bool
      sample: true
    agent:
      description: The agent, for what belongs to one machine.
      type: str
      sample: null
    link:
      description: A link inside of that machine.
      type: str
      sample: null
    corrected_errors:
      description: How many errors a link corrected.
      type: int
      sample: null
    traffic_test:
      description: The traffic test that they were corrected in, counted from 1.
      type: int
      sample: null
    component:
      description: A component whose versions differ.
      type: str
      sample: null
    versions:
      description: Its version on each agent.
      type: dict
      sample: {}
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.cluster_tests import VIPU_CLUSTER_TEST
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_CLUSTER_TEST)


if __name__ == "__main__":
    main()
