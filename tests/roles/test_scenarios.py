# SPDX-License-Identifier: GPL-3.0-or-later
"""Every Molecule scenario of extensions/molecule, on real hosts: run by `make test-roles`, which provides these."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
MOLECULE = CHECKOUT / "extensions" / "molecule"
SCENARIOS = sorted(path.parent.name for path in MOLECULE.glob("*/molecule.yml"))
LOGS = CHECKOUT / "build" / "molecule"
SECONDS = 900


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.timeout(SECONDS + 60)
def test_scenario(scenario: str) -> None:
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{scenario}.log"
    line = ["molecule", "test", "--no-command-borders", "--scenario-name", scenario]
    with log.open("wb") as output:
        done = subprocess.run(
            line,
            cwd=CHECKOUT,
            env={**os.environ, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, f"{' '.join(line)} failed; the whole log is {log}\n" + tail(log)
    assert "side_effect: Executed: Missing playbook" not in log.read_text(errors="replace"), (
        f"a step was left out: {log}"
    )


def tail(log: Path, lines: int = 120) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
