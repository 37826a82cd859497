# SPDX-License-Identifier: GPL-3.0-or-later
"""A twin of a generated POD with faults from a file, which cluster tests detect over the network."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.bringup.own_twin import BIN, OwnTwin, run

SHAPE = ("--machines", "3", "--ilds", "2", "--clusters", "2")


def up(generated: OwnTwin, faults: Path, check: bool = True):
    offset = ("--offset", str(generated.octet))
    return run(BIN / "twin", "up", "--state-dir", generated.state, *SHAPE, *offset, "--faults", faults, check=check)


def defects(generated: OwnTwin) -> list[dict[str, object]]:
    return json.loads(generated.twin("faults", "--json").stdout)


def test_cluster_tests_detect_the_faults_of_a_file(generated, tmp_path):
    faults = tmp_path / "faults.yml"
    faults.write_text("- unplug ag.01.02:7  # loose\n- version ag.03.01 Virm 1.17.0\n- break ag.04.03:gw1\n")
    started = up(generated, faults)
    assert (
        f"The twin is up: 12 IPU-Machines, 8 switches, 8 PDUs, controller {generated.controller}:8090."
        in started.stdout
    )
    assert str(generated.inventory) in started.stdout
    assert [(item["fault"], item["where"], item["expected"]) for item in defects(generated)] == [
        ("unplug", "ag.01.02:7", "ag.01.02:7"),
        ("break", "ag.04.03:gw1", ""),
        ("version", "ag.03.01:Virm", "1.18.0"),
    ]
    assert "Cannot apply --faults: the IPU-Machines already run." in up(generated, faults, check=False).stderr

    generated.playbook("site.yml", "--tags", "vipu")
    for cluster, expected in {"cl1": {"Cabling"}, "cl2": {"GW-Link", "Sync-Link", "Version"}}.items():
        assert failed_tests(generated, cluster) == expected

    generated.twin("heal")
    assert defects(generated) == []
    assert failed_tests(generated, "cl1") == failed_tests(generated, "cl2") == set()
    assert "Already stopped, and now stays off: ag.02.01." in (
        generated.twin("stop-machine", "ag.02.01").stdout + generated.twin("stop-machine", "ag.02.01").stdout
    )
    assert [item["message"] for item in generated.status()["defects"]] == ["ag.02.01: has no power."]


def test_an_invalid_fault_is_reported_with_its_line_and_starts_nothing(generated, tmp_path):
    faults = tmp_path / "faults.txt"
    faults.write_text("# both ends of one cable\nunplug ag.01.01:5\n\nunplug ag.09.01:5\n")
    done = up(generated, faults, check=False)
    assert done.returncode == 1
    message = "Cannot find 'ag.09.01': this rack has no such machine, switch or PDU. Did you mean 'ag."
    assert done.stderr.startswith(f"Error OPU801: {faults} line 4: {message}")
    assert generated.processes() == []


def test_the_controller_ignores_the_options_of_another_one_in_the_environment(generated, monkeypatch):
    monkeypatch.setenv("VIPU_SERVER_STORE", "etcd://127.0.0.1:1")
    monkeypatch.setenv("VIPU_SERVER_SECURE", "true")
    options = ("--machines", "1", "--offset", str(generated.octet))
    started = run(BIN / "twin", "up", "--state-dir", generated.state, *options)
    assert f"controller {generated.controller}:8090." in started.stdout


def failed_tests(generated: OwnTwin, cluster: str) -> set[str]:
    """Return the names of the failed tests of a cluster."""
    done = run(
        BIN / "vipu-admin", "--api-host", generated.controller, *("test", "cluster", cluster, "-o", "json"), check=False
    )
    results = json.loads(done.stdout)["results"]
    assert len(results) == 6
    return {result["test"] for result in results if not result["ok"] and not result["skipped"]}
