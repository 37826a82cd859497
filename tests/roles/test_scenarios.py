# SPDX-License-Identifier: GPL-3.0-or-later
"""Every Molecule scenario of extensions/molecule, on real hosts: run by `make test-roles`, which provides these."""

from __future__ import annotations

import pytest
from role_hosts import CHECKOUT, hosts

SCENARIOS = sorted(
    (path.parent.name for path in (CHECKOUT / "extensions" / "molecule").glob("*/molecule.yml")),
    key=lambda name: (name != "poplar_server", name),  # the guest is emulated, and takes longest
)
LOGS = CHECKOUT / "build" / "molecule"
SECONDS = 1500  # on a busy machine
SHOWN = 120  # lines of the log of one that failed


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.timeout(SECONDS + 60)
def test_scenario(scenario: str) -> None:
    line = ["molecule", "test", "--no-command-borders", "--scenario-name", scenario]
    done = hosts("run", *line, seconds=SECONDS)
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{scenario}.log"
    log.write_text(done.stdout)
    last = "\n".join(done.stdout.splitlines()[-SHOWN:])
    assert done.returncode == 0, f"{' '.join(line)} failed; the whole log is {log}\n{last}"
    assert "side_effect: Executed: Missing playbook" not in done.stdout, f"a step was left out: {log}"
