# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/power.yml with two PDUs of a rack: settings, and rejection of a rack that exceeds their limits."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.integration.pdu_agents import AUTH_KEY, HOST, PRIV_KEY, WRITER, Agents, ServedPdu
from tests.playbooks.checkout import PROGRAMS, environment

RECAP = re.compile(r"^(\S+)\s*: ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=(\d+)", re.MULTILINE)
TRAP = "tr4p-for-tests"
NAMES = ("pdu1", "pdu2")


def inventory(folder: Path, pdus: list[ServedPdu], credentials: bool = True, **variables: Any) -> Path:
    """Write an inventory of a rack with 16 machines, one server and its PDUs, with or without their credentials."""
    user = {"username": WRITER, "auth_key": AUTH_KEY, "priv_key": PRIV_KEY, "timeout": 5}
    hosts = {
        name: {"ansible_host": HOST, **({"pdu_connection": {**user, "port": pdu.port}} if credentials else {})}
        for name, pdu in zip(NAMES, pdus, strict=True)
    }
    config = {
        "banks": [{"near_overload": 12, "overload": 16}],
        "trap_receivers": [{"address": "10.1.3.101", "community": TRAP}],
    }
    groups = {
        "pdus": {"hosts": hosts, "vars": {"pdu_config": config, **variables}},
        "machines": {"hosts": {f"machine{number}": {} for number in range(1, 17)}},
        "poplar_servers": {"hosts": {"server1": {}, "elsewhere": {}}},
    }
    groups["rack1"] = {"hosts": {name: {} for name in (*hosts, *groups["machines"]["hosts"], "server1")}}
    groups["rack2"] = {"hosts": {"elsewhere": {}}}
    file = folder / "inventory.yml"
    rack = {"pod_rack": "rack1", "pod_rack_group": "rack1"}
    file.write_text(yaml.safe_dump({"all": {"vars": rack, "children": groups}}))
    return file


def play(folder: Path, hosts: Path, *options: str) -> tuple[dict[str, tuple[int, int]], str]:
    """Run the playbook; return changes and failures of each host, and the output in one line."""
    done = subprocess.run(
        [PROGRAMS / "ansible-playbook", "-i", hosts, ROOT / "playbooks/power.yml", *options],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
    )
    output = done.stdout + done.stderr
    assert "Traceback" not in output
    assert TRAP not in output
    recap = {host: (int(changed), int(failed)) for host, changed, failed in RECAP.findall(output)}
    assert (done.returncode == 0) == (not any(failed for _changed, failed in recap.values())), output
    return recap, " ".join(output.split())


@pytest.fixture
def pdus(agents: Agents) -> list[ServedPdu]:
    """Return the two PDUs of a rack, each with a load of 345 W on each bank."""
    return [agents.pdu(name.upper(), watts=dict.fromkeys(range(1, 43, 7), 345.0)) for name in NAMES]


def test_pdus_are_configured_and_checked(pdus: list[ServedPdu], tmp_path: Path) -> None:
    hosts = inventory(tmp_path, pdus, pdu_device_power={"machines": 1.1, "poplar_servers": 0.8, "switches": 0.3})
    first, _output = play(tmp_path, hosts, "--check", "--diff")
    assert first == {"pdu1": (1, 0), "pdu2": (1, 0)}
    assert all("set" not in pdu.requests for pdu in pdus)
    assert play(tmp_path, hosts, "-vvv", "--diff")[0] == first
    for name, pdu in zip(NAMES, pdus, strict=True):
        assert (pdu.pdu.settings.name, pdu.pdu.settings.location) == (name, "rack1")
        assert [bank.near for bank in pdu.pdu.settings.banks] == [12] * 6
        assert pdu.requests["set"] == 1
    again, output = play(tmp_path, hosts)
    assert again == {"pdu1": (0, 0), "pdu2": (0, 0)}
    assert all(pdu.requests["set"] == 1 for pdu in pdus)
    assert "load: 2.07 of 22.0 kW" in output
    assert "banks: 1.5, 1.5, 1.5, 1.5, 1.5, 1.5 A" in output
    assert "alarms: none" in output


def test_a_rack_with_too_much_load_is_rejected(pdus: list[ServedPdu], tmp_path: Path) -> None:
    power = {"machines": 1.4, "poplar_servers": 0.8}
    hosts = inventory(tmp_path, pdus, pdu_device_power=power)
    recap, output = play(tmp_path, hosts)
    assert {host: failed for host, (_changed, failed) in recap.items()} == {"pdu1": 1, "pdu2": 1}
    for name, pdu in zip(NAMES, pdus, strict=True):
        assert (
            f"Cannot add 21.1 kW to {name} (AP8886 at {HOST}:{pdu.port}): the whole PDU would carry 23.2 kW of at "
            "most 22 kW (2.1 now and 21.1 more); phase 1 would carry 33.7 A of at most 32 A (3.1 now and 30.6 more)"
        ) in output
    assert "Show load and alarms" not in output
    # Both PDUs together have enough headroom.
    hosts = inventory(tmp_path, pdus, pdu_device_power=power, pdu_redundant=False)
    assert play(tmp_path, hosts)[0] == {"pdu1": (0, 0), "pdu2": (0, 0)}


def test_one_exceeded_pdu_fails_the_run_for_all(pdus: list[ServedPdu], tmp_path: Path) -> None:
    hosts = inventory(tmp_path, pdus, pdu_device_power={"machines": 1.1})
    pdus[1].set_loads({1: 3600.0})  # 16 A of a bank of 16 A, so no more fits
    recap, output = play(tmp_path, hosts)
    assert recap["pdu2"][1] == 1
    assert "bank 1 would carry" in output
    assert "Show load and alarms" not in output


def test_a_pdu_without_credentials_is_skipped(pdus: list[ServedPdu], tmp_path: Path) -> None:
    recap, output = play(tmp_path, inventory(tmp_path, pdus, credentials=False), "--limit", "pdu1")
    assert recap == {"pdu1": (0, 0)}
    assert "pdu1 is skipped, because pdu_connection is not set. Set it" in output
    assert not any(pdu.requests for pdu in pdus)


def test_display_of_a_complete_rack_without_connections(tmp_path: Path) -> None:
    # That rack does not exist here: its addresses and keys are not available.
    recap, output = play(
        tmp_path, ROOT / "inventory/pod64", "-e", "pdu_display=true", "-e", f"vault_pdu_trap_community={TRAP}"
    )
    assert recap == {"pdu1": (0, 0), "pdu2": (0, 0)}
    for name in recap:
        assert f"location: rack1 name: {name} " in output
    assert "trap_receivers: - address: 10.1.3.101 community: not shown" in output
