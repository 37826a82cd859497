# SPDX-License-Identifier: GPL-3.0-or-later
"""Discovery of the agents of a twin with the published commands."""

from __future__ import annotations

import re

from tests.integration.bringup.own_twin import BIN, OwnTwin, run
from tests.waiting import until

HEADER = ["Host", "Port", "Network Interface", "Time Since Last Seen", "Agent Auto-Add ID"]


def up(generated: OwnTwin, *options: str) -> str:
    return run(
        BIN / "twin", "up", "--state-dir", generated.state, "--machines", "2", "--offset", generated.octet, *options
    ).stdout


def vipu_admin(generated: OwnTwin, line: str) -> str:
    return run(BIN / "vipu-admin", "--api-host", generated.controller, *line.split()).stdout


def discovered(generated: OwnTwin, network: str) -> list[list[str]]:
    """Return the rows of this twin; other twins on this machine may announce themselves too."""
    lines = [line for line in vipu_admin(generated, "discover agent").splitlines() if set(line) != {"-"}]
    header, *rows = ([cell.strip() for cell in line.split("|")] for line in lines)
    assert header[: len(HEADER)] == HEADER
    return [row for row in rows if row[0].startswith(f"{network}.")]


def test_agents_are_discovered_and_added(generated: OwnTwin) -> None:
    network = f"127.{2 + generated.octet}"
    assert "The twin is up" in up(generated, "--discovery")
    until(lambda: len(discovered(generated, network)) == 2, 30, "both agents announced themselves")
    for number, row in enumerate(discovered(generated, network), 1):
        address = f"{network}.1.{number}"
        assert re.fullmatch(r"\d+\.\d{9}s", row.pop(3))
        assert row == [address, "8080", "lo", f"{address}-8080"]

    added = vipu_admin(generated, f"discover agents --auto-add --allow {network}.0.0/16")
    assert added == f"Added agent {network}.1.1-8080\nAdded agent {network}.1.2-8080\n"
    until(lambda: vipu_admin(generated, "list agents").count(" | Up ") == 2, 30, "both agents are Up")
    assert vipu_admin(generated, f"create cluster cl0 --agents {network}.1.1-8080,{network}.1.2-8080") == (
        "create cluster (cl0): success.\n"
    )


def test_discovery_is_off_by_default(generated: OwnTwin) -> None:
    up(generated)
    assert "autodiscovery" not in " ".join(word for each in generated.processes() for word in each.cmdline())
    assert "announce_interfaces" not in (generated.state / "agents.json").read_text()
    assert "options of the controller have changed" in up(generated, "--discovery")
    assert "announce_interfaces" in (generated.state / "agents.json").read_text()
