# SPDX-License-Identifier: GPL-3.0-or-later
"""``vipu-cli`` in the way that PopTorch calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.integration.cli.cli_support import Cli


@pytest.fixture(scope="module")
def cli(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """Create a cluster of two machines with one allocation; return the runner."""
    cli = Cli(tmp_path_factory.mktemp("older"), lab.address)
    for agent in lab.rack.agents[:2]:
        cli.out(f"vipu-admin create agent {agent.id} --host {agent.host} --port {agent.port}")
    cli.out("vipu-admin create cluster cl0 --agents ag01,ag02")
    cli.out("vipu-admin create allocation a --cluster cl0 --size 2")
    return cli


def older(cli: Cli, line: str) -> str:
    """Return the standard output of ``vipu-cli -a --showjson``."""
    done = subprocess.run(
        [sys.executable, "-m", "openipu.vipu.cli.older", "-a", "--showjson", *line.split()],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cli.home,
        env=cli.environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_partitions_from_creation_to_removal(cli: Cli) -> None:
    (cluster,) = json.loads(older(cli, "list cluster"))
    (domain,) = cluster["spec"]["ipu_link_domains"]
    assert len(domain["ipus"]) == 8

    older(cli, "create partition tests --size 4 --num-gcds 2 --gcd-sync-replicas 4")
    assert cli.files() == ["tests_gcd0_ipuof.conf", "tests_gcd1_ipuof.conf"]
    (found,) = json.loads(older(cli, "list partition"))
    spec = found["partition"]["spec"]
    assert (found["partition"]["id"], spec["num_gcds"], spec["num_replicas"]) == ("tests", 2, 4)
    assert [ipu["routing_id"] for ipu in spec["ipus"]] == [0, 1, 2, 3]
    assert (spec["allocation_id"], spec["sync_type"], found["partition"]["ready_state"]) == ("a", 1, 2)
    older(cli, "reset partition tests")
    older(cli, "delete partition tests")
    assert json.loads(older(cli, "list partition")) == []


def test_configuration_with_the_shorter_flag(cli: Cli) -> None:
    cli.out("vipu create partition p --size 1 --allocation a")
    assert cli.out("vipu get partition p --gcd 0 --ipu-configs") == (cli.conf / "p_ipuof.conf").read_text()
