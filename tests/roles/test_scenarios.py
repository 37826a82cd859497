# SPDX-License-Identifier: GPL-3.0-or-later
"""Molecule scenarios of extensions/molecule on hosts with systemd. `make test-roles` creates the hosts."""

from __future__ import annotations

import pytest

from tests import ROOT
from tests.roles.role_hosts import hosts

SCENARIOS = sorted(
    (path.parent.name for path in (ROOT / "extensions" / "molecule").glob("*/molecule.yml")),
    key=lambda name: (name != "poplar_server", name),  # first, because its emulated guest takes longest
)
LOGS = ROOT / "build" / "molecule"
SECONDS = 2700  # sufficient for the emulated guest on a busy machine
LOG_LINES = 120  # log lines in the message of a failure


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.timeout(SECONDS + 60)
def test_scenario(scenario: str) -> None:
    line = ["molecule", "test", "--no-command-borders", "--scenario-name", scenario]
    result = hosts("run", *line, seconds=SECONDS)
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{scenario}.log"
    log.write_text(result.stdout)
    excerpt = "\n".join(result.stdout.splitlines()[-LOG_LINES:])
    assert result.returncode == 0, f"{' '.join(line)} failed; the complete log is {log}\n{excerpt}"
    assert "side_effect: Executed: Missing playbook" not in result.stdout, f"a step was skipped: {log}"
