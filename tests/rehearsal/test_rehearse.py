# SPDX-License-Identifier: GPL-3.0-or-later
"""``openipu-pod rehearse`` with the files of a real rack: nothing but loopback is contacted."""

from __future__ import annotations

import ipaddress
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.rehearsal.conftest import MARK, NAMESPACE, Installation, namespace

SEND = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('10.1.3.131', 161))"


@pytest.fixture
def rack(tmp_path: Path) -> Path:
    folder = tmp_path / "rack"
    shutil.copytree(ROOT / "inventory/pod64", folder)
    return folder


def test_the_namespace_counts_packets(installation: Installation) -> None:
    count = installation.folder / "count"
    command = [*namespace(), "sh", "-c", NAMESPACE, "sh", str(count), "yes", sys.executable, "-c"]
    for program, packets in ((SEND, 1), ("pass", 0), (SEND.replace("10.1.3.131", "127.0.0.1"), 0)):
        subprocess.run([*command, program], check=True, timeout=60)
        assert int(count.read_text()) == packets


def test_the_rack_of_a_user(installation: Installation, rack: Path) -> None:
    try:
        (report, *others), packets = installation.rehearsals(2, rack, "--keep")
        assert report["succeeded"], report["failures"]
        assert packets == 0
        [again] = others
        assert again["succeeded"], again["failures"]
        assert again["changes"] == []
        assert report["connections_outside_loopback"] == []
        assert MARK in [phase["name"] for phase in report["phases"]]
        # The user's names and addresses, and no others.
        changed = {change["host"]: change["address"] for change in report["changes"]}
        assert changed == {
            "pdu1": "10.1.3.131",
            "pdu2": "10.1.3.132",
            "mgmt1": "10.1.3.121",
            "tor1": "10.1.3.111",
            "server1": "10.1.3.101",
        }
        assert "127." not in json.dumps(report["changes"])
        lines = [line for change in report["changes"] for line in change["lines"]]
        assert "+agents.ag07.host: 10.1.2.7" in lines
        assert "+partitions.vision.size: 16" in lines
        assert set(report["undefined_variables"]) == {
            "vault_pdu_auth_key",
            "vault_pdu_priv_key",
            "vault_pdu_trap_community",
            "vault_switch_password",
        }
        drawing = (rack / "rehearsal-rack-report.html").read_text()
        assert "ag07" in drawing
        assert "127." not in drawing

        twin = "openipu.twin.cli.main"
        assert installation.run(twin, "fault", "unplug", "ipum07:5").returncode == 0
        defects = json.loads(installation.run(twin, "faults", "--json").stdout)
        assert [defect["where"] for defect in defects] == ["ag07:5"]
        addresses = json.loads((installation.folder / "t/twin.json").read_text())
        assert ipaddress.ip_address(addresses["controller_host"]).is_loopback
    finally:
        assert installation.run("openipu.twin.cli.main", "down").returncode == 0
    assert not (installation.folder / "t").exists()


def test_a_broken_rack_fails_as_the_real_one_would(installation: Installation, rack: Path) -> None:
    report, packets = installation.rehearse(rack, "--fault", "unplug ipum07:5")
    assert not report["succeeded"]
    assert packets == 0
    [failure] = report["failures"]
    assert failure["phase"] == "Test clusters"
    assert failure["runs"] == ["site"]
    assert "ipum07:5 <--> ipum08:1" in failure["message"]
    assert "The rack report is in 'rehearsal-rack-report.html'." in failure["message"]
    assert len(report["defects"]) == 1
    assert not (installation.folder / "t").exists()
