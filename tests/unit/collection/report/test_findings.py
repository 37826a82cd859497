# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the verdicts on cables: a missing verdict does not count as passed."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind
from ansible_collections.openipu.pod.plugins.module_utils.report.actions import actions
from ansible_collections.openipu.pod.plugins.module_utils.report.chassis_ports import ChassisPort, pair
from ansible_collections.openipu.pod.plugins.module_utils.report.findings import Findings
from ansible_collections.openipu.pod.plugins.module_utils.report.view import view
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport import cli_tests

from tests.unit.collection.report.report_support import info, passing

PRINTED = """\
Showing test results for cluster cl0
  Test Type | Duration | Passed  | Summary
  Cabling   | 0.01s    | 64/64   | All cables connected as expected
  IPU-Link  | 0.02s    | 314/320 | Failed Links:
            |          |         | ag02:5 <--> ag03:1
            |          |         | %s
"""
NAMED = pair(ChassisPort("ag02", "IPU-Link", 5), ChassisPort("ag03", "IPU-Link", 1))
OTHER = pair(ChassisPort("ag02", "IPU-Link", 6), ChassisPort("ag03", "IPU-Link", 2))
SYNC = pair(ChassisPort("ag02", "Sync-Link", 6), ChassisPort("ag03", "Sync-Link", 2))


def printed(line: str) -> dict[str, Any]:
    return cli_tests.status(PRINTED % line, None)


def test_unknown_line_makes_other_cables_unknown() -> None:
    findings = Findings(printed("the rest is on fire"))
    assert findings.of(CableKind.IPU_LINK, NAMED)[0] == "failed"
    assert findings.of(CableKind.IPU_LINK, OTHER) == (
        "unknown",
        "passed Cabling. IPU-Link failed without a verdict on this cable.",
    )
    assert findings.of(CableKind.SYNC_LINK, SYNC) == ("untested", "not tested.")
    page = view(None, info(), printed("the rest is on fire"))
    assert page["figures"][1]["text"] == "1 failed, 63 unknown, 30 not tested"


@pytest.mark.parametrize("line", ["ag07: internal3", "ag07: 4 internal links missing"])
def test_failure_inside_a_machine_concerns_no_cable(line: str) -> None:
    findings = Findings(printed(line))
    assert findings.of(CableKind.IPU_LINK, OTHER) == ("passed", "passed Cabling and IPU-Link.")


def test_cables_of_a_silent_agent_are_unknown() -> None:
    findings = Findings(printed("Agent 'ag03' did not respond: deadline exceeded."))
    assert findings.of(CableKind.IPU_LINK, OTHER)[0] == "unknown"
    far = pair(ChassisPort("ag09", "IPU-Link", 6), ChassisPort("ag10", "IPU-Link", 2))
    assert findings.of(CableKind.IPU_LINK, far)[0] == "passed"


def test_failed_test_without_failures_has_no_verdict() -> None:
    run = passing()
    run["results"][1].update(ok=False, passed=0)
    assert Findings(run).of(CableKind.IPU_LINK, NAMED)[0] == "unknown"
    assert [each.text for each in actions(run)] == [
        "Find out why the Cabling test failed, and test again. It reported no cause."
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ag07: 4 internal links missing", "Request service for ag07: ag07: 4 internal links missing"),
        ("ag07: internal3", "Request service for ag07: its internal link ag07:internal3 fails."),
        ("the rest is on fire", "Investigate the report of the controller: the rest is on fire"),
        (
            "Agent 'ag07' did not respond: deadline exceeded.",
            "Find out why ag07 does not respond, and test again. Its cables were not tested. The controller reports: "
            "deadline exceeded.",
        ),
        (
            "Agent 'ag07' did not respond: it belongs to deployment a1, not to b2. Use 'vipu-admin take-over agent' to "
            "change that.",
            "Find out why ag07 does not respond, and test again. Its cables were not tested. The controller reports: "
            "it belongs to deployment a1, not to b2. Use 'vipu-admin take-over agent' to change that.",
        ),
    ],
)
def test_every_failure_has_an_action(line: str, expected: str) -> None:
    texts = [each.text for each in actions(printed(line))]
    assert len(texts) == 2
    assert expected in texts
    assert any(text.startswith("Reseat both ends of the cable ag02:5 <--> ag03:1") for text in texts)


def test_an_agent_without_a_response_is_one_action() -> None:
    run = printed("Agent 'ag07' did not respond: deadline exceeded.")
    [silence] = [each for each in run["results"][1]["failures"] if each["agent"]]
    unexplained = {**silence, "reason": ""}
    later = {**silence, "reason": "Agent 'ag07' did not respond: it was removed."}
    run["results"][1]["failures"] = [unexplained, silence, later]
    assert [each.text for each in actions(run)] == [
        "Find out why ag07 does not respond, and test again. Its cables were not tested. The controller reports: "
        "deadline exceeded."
    ]
    run["results"][1]["failures"] = [unexplained]
    assert [each.text for each in actions(run)] == [
        "Find out why ag07 does not respond, and test again. Its cables were not tested."
    ]
