# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run says of each cable: above all, that what it does not say is not taken for good news."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind
from ansible_collections.openipu.pod.plugins.module_utils.report.actions import actions
from ansible_collections.openipu.pod.plugins.module_utils.report.ends import End, pair
from ansible_collections.openipu.pod.plugins.module_utils.report.findings import Findings
from ansible_collections.openipu.pod.plugins.module_utils.report.view import view
from ansible_collections.openipu.pod.plugins.module_utils.vipu import cli_tests
from report_support import info, passing

PRINTED = """\
Showing test results for cluster cl0
  Test Type | Duration | Passed  | Summary
  Cabling   | 0.01s    | 64/64   | All cables connected as expected
  IPU-Link  | 0.02s    | 314/320 | Failed Links:
            |          |         | ag02:5 <--> ag03:1
            |          |         | %s
"""
NAMED = pair(End("ag02", "IPU-Link", 5), End("ag03", "IPU-Link", 1))
OTHER = pair(End("ag02", "IPU-Link", 6), End("ag03", "IPU-Link", 2))
SYNC = pair(End("ag02", "Sync-Link", 6), End("ag03", "Sync-Link", 2))


def printed(line: str) -> dict[str, Any]:
    return cli_tests.status(PRINTED % line, None)


def test_a_line_that_nobody_knows_is_no_news_of_the_other_cables() -> None:
    findings = Findings(printed("the rest is on fire"))
    assert findings.of(CableKind.IPU_LINK, NAMED)[0] == "failed"
    assert findings.of(CableKind.IPU_LINK, OTHER) == (
        "untold",
        "passed Cabling. IPU-Link failed, and does not tell of this cable.",
    )
    assert findings.of(CableKind.SYNC_LINK, SYNC) == ("untested", "not tested.")
    page = view(None, info(), printed("the rest is on fire"))
    assert page["figures"][1]["text"] == "1 failed, 30 not tested, 63 not told"


@pytest.mark.parametrize("line", ["ag07: internal3", "ag07: 4 internal links missing"])
def test_what_is_wrong_inside_of_a_machine_is_no_cable(line: str) -> None:
    findings = Findings(printed(line))
    assert findings.of(CableKind.IPU_LINK, OTHER) == ("passed", "passed Cabling and IPU-Link.")


def test_cables_of_a_machine_that_did_not_answer_are_not_told_of() -> None:
    findings = Findings(printed("Agent 'ag03' did not answer: deadline exceeded."))
    assert findings.of(CableKind.IPU_LINK, OTHER)[0] == "untold"
    far = pair(End("ag09", "IPU-Link", 6), End("ag10", "IPU-Link", 2))
    assert findings.of(CableKind.IPU_LINK, far)[0] == "passed"


def test_a_test_that_failed_without_a_word_tells_nothing() -> None:
    run = passing()
    run["results"][1].update(ok=False, passed=0)
    assert Findings(run).of(CableKind.IPU_LINK, NAMED)[0] == "untold"
    assert [each.text for each in actions(run)] == [
        "See why the Cabling test failed, and test again: it does not tell."
    ]


@pytest.mark.parametrize(
    ("line", "todo"),
    [
        ("ag07: 4 internal links missing", "Have ag07 serviced: ag07: 4 internal links missing"),
        ("ag07: internal3", "Have ag07 serviced: its link internal3 inside of the machine fails."),
        ("the rest is on fire", "Look into what the controller says: the rest is on fire"),
        (
            "Agent 'ag07' did not answer: deadline exceeded.",
            "See why ag07 does not answer, and test again: nothing of it could be tested.",
        ),
    ],
)
def test_whatever_is_wrong_has_an_action(line: str, todo: str) -> None:
    texts = [each.text for each in actions(printed(line))]
    assert len(texts) == 2
    assert todo in texts
    assert any(text.startswith("Reseat both ends of the cable between ag02 IPU-Link port 5 and ag03") for text in texts)
