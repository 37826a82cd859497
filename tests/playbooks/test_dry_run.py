# SPDX-License-Identifier: GPL-3.0-or-later
"""The documented dry run without a controller, and devices that the playbooks leave alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

PROGRAM = Path(sys.executable).parent
GUIDE = ROOT / "docs/how-to/real-rack.md"


def run(program: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "VIPU_"))},
        "PATH": f"{PROGRAM}:{os.environ['PATH']}",
        "ANSIBLE_HOME": str(folder / ".ansible"),
        "ANSIBLE_NOCOLOR": "true",
    }
    command = [str(PROGRAM / program), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.fixture
def rack(tmp_path: Path) -> Path:
    """Return a copy of the real rack in which no switch and no PDU is managed."""
    folder = tmp_path / "rack"
    shutil.copytree(ROOT / "inventory/pod64", folder)
    text = (folder / "pod.yml").read_text()
    text = re.sub(r"(model: (?:AP8886|DCS-7010T-48-F))", r"\1, managed: false", text)
    text = text.replace("model: DCS-7060CX-32S-F\n", "model: DCS-7060CX-32S-F\n        managed: false\n")
    assert text.count("managed: false") == 4
    (folder / "pod.yml").write_text(text)
    return folder


def test_the_dry_run_of_the_guide_needs_no_controller_and_no_unmanaged_device(rack: Path) -> None:
    [command] = re.findall(r"^ansible-playbook (.* -e pod_check_reach=false)$", GUIDE.read_text(), re.MULTILINE)
    done = run("ansible-playbook", rack, *command.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^server1 .*failed=0", done.stdout, re.MULTILINE), done.stdout
    assert not re.search(r"^(tor1|mgmt1|pdu\d) ", done.stdout, re.MULTILINE), done.stdout


def test_unmanaged_devices_have_groups_of_their_own(rack: Path) -> None:
    text = (rack / "pod.yml").read_text().replace("- name: server4", "- name: server4\n        managed: false")
    (rack / "pod.yml").write_text(f"{text}\ndeploy: {{poplar_servers: [common]}}\n")
    done = run("ansible-inventory", rack, "-i", "pod.yml", "--list")
    groups = json.loads(done.stdout)
    assert groups["unmanaged_data_switches"]["hosts"] == ["tor1"]
    assert groups["unmanaged_management_switches"]["hosts"] == ["mgmt1"]
    assert groups["unmanaged_pdus"]["hosts"] == ["pdu1", "pdu2"]
    assert groups["unmanaged_poplar_servers"]["hosts"] == ["server4"]
    assert groups["deploy_common"]["hosts"] == groups["poplar_servers"]["hosts"] == ["server1", "server2", "server3"]
    assert not groups.get("switches", {}).get("hosts") and "pdus" not in groups
    assert {"tor1", "pdu1", "server4"} <= set(groups["rack1"]["hosts"])


def test_a_controller_must_be_managed(rack: Path) -> None:
    text = (
        (rack / "pod.yml").read_text().replace("[controller, poplar]", "[controller, poplar]\n        managed: false")
    )
    (rack / "pod.yml").write_text(text)
    done = run("openipu-pod", rack, "validate", ".")
    assert done.returncode == 1
    assert "server 'server1' has the role 'controller', so it must be managed" in done.stdout
