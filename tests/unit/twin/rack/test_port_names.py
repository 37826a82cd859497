# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports and links in messages have the form in which ``twin fault`` reads them."""

from __future__ import annotations

import re
import shlex

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.report import actions
from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects
from ansible_collections.openipu.pod.plugins.module_utils.vipu.cluster_test.cable_names import link_name, port_name
from ansible_collections.openipu.pod.plugins.module_utils.vipu.cluster_test.failures import failure_message

from openipu.twin.cables.wiring import CHASSIS_PORTS, Place
from openipu.twin.rack import fault_lines
from openipu.twin.rack.faults import RackFaults
from openipu.vipu.api import cluster_test_messages
from openipu.vipu.cluster_test.model import Test
from openipu.vipu.cluster_test.results import Run, RunState
from openipu.vipu.domain.model import Topology
from tests.unit.vipu.cluster_test.rack_support import Bench

NAME = re.compile(r"\bag\d+:[a-z]*\d+\b")
OTHER_FORMS = re.compile(r"\bport \d|\[|\d:ag\d| <-> ")
PORTS = [(kind, number) for kind, numbers in CHASSIS_PORTS.items() for number in numbers]


@pytest.mark.parametrize(("kind", "number"), PORTS)
def test_names_of_all_ports_are_read(kind: str, number: int) -> None:
    name = port_name("ag03", kind, number)
    assert fault_lines.parse(f"unplug {name}") == ["unplug", name]
    assert Place.parse(name) == ("ag03", kind, number)


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("unplug ag01:5", {"ag01:5", "ag02:1"}),
        ("swap ag01:5 ag02:6", {"ag01:5", "ag02:1", "ag02:6", "ag03:2"}),
        ("break ag01:sync6", {"ag01:sync6", "ag02:sync2"}),
        ("break ag01:gw1", {"ag01:gw1", "ag05:gw2"}),
        ("errors ag01:5 327", {"ag01:5", "ag02:1"}),
        ("break ag02:internal4", {link_name("ag02", "internal4")}),
        ("errors ag02:internal4 327", {link_name("ag02", "internal4")}),
    ],
)
def test_a_fault_has_the_same_names_in_all_messages(fault: str, named: set[str]) -> None:
    bench = Bench(4, 2, Topology.TORUS)
    made = RackFaults(bench.rack.machines, bench.wiring)
    verb, *words = shlex.split(fault)
    made._verbs[verb](*words)
    tests = tuple(Test)
    run = Run("1", bench.cluster, tests, (), 0.0, RunState.FINISHED, tuple(bench.run([test])[test] for test in tests))
    result = objects.test_run(cluster_test_messages.run(run))
    texts = {
        "defects": [str(defect) for defect in made.defects() if defect.fault != "stop"],
        "reasons": [failure["reason"] for each in result["results"] for failure in each["failures"]],
        "actions": [action.text for action in actions.actions(result)],
        "gate": [failure_message(result, "cl0")],
    }
    for source, lines in texts.items():
        assert lines, source
        found = set(NAME.findall(" ".join(lines)))
        assert found and found <= named, (source, lines)
        assert not OTHER_FORMS.search(" ".join(lines)), (source, lines)
