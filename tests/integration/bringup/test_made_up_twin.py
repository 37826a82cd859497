# SPDX-License-Identifier: GPL-3.0-or-later
"""A twin of a POD that is made up, with faults from a file: what is wrong in it is found over the network."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_twin import BIN, OwnTwin, run

SHAPE = ("--machines", "3", "--ilds", "2", "--clusters", "2")


@pytest.fixture
def made_up(tmp_path: Path) -> Iterator[OwnTwin]:
    """Nothing is started yet; its addresses lie between those of the other twins of these tests."""
    state = tmp_path / "state"
    made = OwnTwin(state / "pod" / "pod.yml", state, 5 + os.getpid() % 23 * 10)
    yield made
    made.twin("down")


def up(made_up: OwnTwin, faults: Path, check: bool = True):
    offset = ("--offset", str(made_up.octet))
    return run(BIN / "twin", "up", "--state-dir", made_up.state, *SHAPE, *offset, "--faults", faults, check=check)


def wrong(made_up: OwnTwin) -> list[dict[str, object]]:
    return json.loads(made_up.twin("faults", "--json").stdout)


def test_faults_of_a_file_are_found_by_the_tests_and_healed(made_up, tmp_path):
    faults = tmp_path / "faults.yml"
    faults.write_text("- unplug ag.01.02:7  # loose\n- version ag.03.01 Virm 1.17.0\n- break ag.04.03:gw1\n")
    started = up(made_up, faults)
    assert (
        f"The twin is up: 12 IPU-Machines, 8 switches, 8 PDUs, controller {made_up.controller}:8090." in started.stdout
    )
    assert str(made_up.inventory) in started.stdout
    assert [(item["fault"], item["where"], item["expected"]) for item in wrong(made_up)] == [
        ("unplug", "ag.01.02:7", "ag.01.02:7"),
        ("break", "ag.04.03:gw1", ""),
        ("version", "ag.03.01:Virm", "1.18.0"),
    ]
    assert "The IPU-Machines run already: break them with 'twin fault'" in up(made_up, faults, check=False).stderr

    made_up.playbook("site.yml", "--tags", "vipu")
    for cluster, expected in {"cl1": {"Cabling"}, "cl2": {"GW-Link", "Sync-Link", "Version"}}.items():
        assert failed_tests(made_up, cluster) == expected

    made_up.twin("heal")
    assert wrong(made_up) == []
    assert failed_tests(made_up, "cl1") == failed_tests(made_up, "cl2") == set()
    assert "Already stopped: ag.02.01." in (
        made_up.twin("stop-machine", "ag.02.01").stdout + made_up.twin("stop-machine", "ag.02.01").stdout
    )
    assert [item["sentence"] for item in made_up.status()["wrong"]] == ["ag.02.01: has no power."]


def test_a_fault_that_cannot_be_is_told_with_its_line_and_nothing_runs(made_up, tmp_path):
    faults = tmp_path / "faults.txt"
    faults.write_text("# both ends of one cable\nunplug ag.01.01:5\n\nunplug ag.09.01:5\n")
    done = up(made_up, faults, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == f"Error: {faults} line 4: There is no machine 'ag.09.01' in this rack."
    assert made_up.processes() == []


def failed_tests(made_up: OwnTwin, cluster: str) -> set[str]:
    """The names of the tests that a cluster fails."""
    done = run(
        BIN / "vipu-admin", "--api-host", made_up.controller, *("test", "cluster", cluster, "-o", "json"), check=False
    )
    results = json.loads(done.stdout)["results"]
    assert len(results) == 6
    return {result["test"] for result in results if not result["ok"] and not result["skipped"]}
