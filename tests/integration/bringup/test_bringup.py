# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of ``make bring-up`` and ``make twin-down``, on a separate twin."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import signal
import socket
import subprocess

import pytest

from openipu.shared.vipu.client import Client, Connection
from openipu.twin.cli.arrival import unreached
from tests import ROOT
from tests.integration.bringup.own_twin import BIN, OwnTwin, changed
from tests.waiting import until

TWIN = BIN.relative_to(ROOT) / "twin" if BIN.is_relative_to(ROOT) else BIN / "twin"  # as messages print it

# Tasks that change on the first run: two switches, two PDUs, the controller, the gate, partitions, the report.
TASKS = 8


def content(own: OwnTwin) -> str:
    """Return a digest that changes with every write to the controller's database."""
    digest = hashlib.sha256()
    for path in sorted((own.state / "controller").iterdir()):
        if not path.name.endswith("-shm"):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def test_the_first_run_creates_active_partitions_and_the_second_changes_nothing(own):
    up = own.twin("up")
    assert f"The twin is up: 16 IPU-Machines, 2 switches, 2 PDUs, controller {own.controller}:8090." in up.stdout
    assert own.state.stat().st_mode & 0o777 == 0o700

    # Check mode on an empty controller reports all changes and makes none.
    untouched = content(own)
    assert changed(own.playbook("site.yml", "--check", "--diff")) == TASKS
    assert content(own) == untouched
    assert own.status()["agents"] == []

    first = own.playbook("site.yml")
    assert changed(first) == TASKS
    assert "- 16 of 16 agents up\n" in first.stdout
    assert "- allocation team-b with 8 IPU-Machines of cl0, 14 IPUs free\n" in first.stdout
    assert "- partition vision is ACTIVE, 16 IPUs of team-a, routing DNC\n" in first.stdout

    found = own.status()
    assert [agent["id"] for agent in found["agents"]] == [f"ag{number:02}" for number in range(1, 17)]
    assert {agent["state"] for agent in found["agents"]} == {"Up"}
    assert [(cluster["id"], cluster["topology"]) for cluster in found["clusters"]] == [("cl0", "torus")]
    assert {partition["state"] for partition in found["partitions"]} == {"ACTIVE"}
    assert any(p["ipus"] == 16 and p["reconfigurable"] for p in found["partitions"])
    assert sum(allocation["free_ipus"] for allocation in found["allocations"]) >= 16

    before = content(own)
    assert changed(own.playbook("site.yml")) == 0
    assert content(own) == before, "the second run wrote"
    assert "is already up" in own.twin("up").stdout


def test_the_status_shows_the_next_steps(deployed):
    text = deployed.twin("status").stdout
    assert f"vipu --api-host {deployed.controller} list partitions" in text
    assert "16 of 16 up" in text
    assert "vision" in text
    assert "down --state-dir" in text


def test_a_fault_is_applied_and_healed(deployed):
    assert "Done: hang ag05" in deployed.twin("fault", "hang", "ag05").stdout
    assert "ag05: does not respond." in deployed.twin("faults").stdout
    assert "Done: heal" in deployed.twin("fault", "heal").stdout
    assert "No defects." in deployed.twin("faults").stdout
    done = deployed.twin("fault", "hang", "ag99", check=False)
    assert done.returncode == 1
    message = "Cannot find 'ag99': this rack has no such machine, switch or PDU. Did you mean 'ag09'?"
    assert done.stderr.strip() == f"Error OPU801: {message}"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user in a checkout whose virtual environment is not activated."""
    environment = {**os.environ, "PATH": "/usr/bin:/bin", "COLUMNS": "120"}
    return subprocess.run(line, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100)


def hints(output: str) -> dict[str, str]:
    """Return the commands that a message prints, by the text before them."""
    return dict(re.findall(r"(Find it|Undo it|Start again): +(.+)", output))


@pytest.mark.parametrize(
    ("fault", "status", "finding"),
    [
        ("unplug ag03:7", 1, "ag03:7 [IPU-Link] <--> ag04:3"),
        ("unplug ag03:sync6", 1, "Sync-Link"),
        ("break ag03:internal4", 1, "ag03"),
        ("break ag03:7", 1, "ag03"),
        ("break ag03:sync6", 1, "ag03"),
        ("errors ag01:5 500", 1, "corrected link errors: 500"),
        ("version ag08 Virm 1.17.0", 1, "Virm"),
        ("hot ag11 40", 0, "ag11: is 40 °C warmer than normal."),
        ("unplug tor1:Ethernet9/1", 0, "tor1: Port Ethernet9/1 has no link"),
        ("login pdu1", 2, "pdu1"),
    ],
)
def test_the_printed_next_steps_find_a_fault_and_undo_it(deployed, fault, status, finding):
    steps = hints(deployed.twin("fault", *fault.split()).stdout)
    try:
        found = shell(steps["Find it"])
        assert (finding in found.stdout, found.returncode) == (True, status), found.stdout + found.stderr
        undone = shell(steps["Undo it"])
        assert undone.returncode == 0, undone.stderr
        assert "No defects." in deployed.twin("faults").stdout
    finally:
        healed = deployed.twin("fault", "heal").stdout
    assert hints(healed) == {}


def test_the_printed_command_starts_a_stopped_machine(deployed):
    steps = hints(deployed.twin("stop-machine", "ag03").stdout)
    done = shell(steps["Start again"])
    assert (done.stdout, done.returncode) == ("Started: ag03.\n", 0), done.stderr
    assert "No defects." in deployed.twin("faults").stdout


@pytest.mark.parametrize("name", ["controller", "agents"])
def test_up_restarts_a_crashed_half_of_the_twin(deployed, name):
    other = {"controller": "agents", "agents": "controller"}[name]
    kept = deployed.pid(other)
    os.kill(deployed.pid(name), signal.SIGKILL)
    done = deployed.twin("status", check=False)
    title = {"controller": "the V-IPU controller", "agents": "the rack's agents"}[name]
    remedy = f"Start it with '{TWIN} up --inventory {deployed.inventory} --state-dir {deployed.state}'."
    assert (done.returncode, done.stdout) == (1, "")
    log = f"{deployed.state / name}.log"
    assert (
        done.stderr == f"Error OPU800: Cannot use the twin in {deployed.state}: {title} is down. See {log}. {remedy}\n"
    )
    assert "The twin is up:" in deployed.twin("up").stdout
    assert deployed.pid(other) == kept
    found = deployed.status()
    assert len(found["agents"]) == 16, "the controller's records survive"
    deployed.playbook("site.yml", "--tags", "preflight")


def test_a_changed_pod_restarts_the_agents(deployed):
    before = deployed.pid("agents"), deployed.pid("controller")
    table = deployed.inventory.parent / "machines.csv"
    text = table.read_text()
    try:
        table.write_text(text.replace("8203921-0016", "8203921-9999"))
        assert "The machines of the POD have changed: stopping the agents" in deployed.twin("up").stdout
        assert deployed.pid("agents") != before[0]
        assert deployed.pid("controller") == before[1]
    finally:
        table.write_text(text)
        deployed.twin("up")


def test_a_started_machine_is_up_at_once(deployed):
    deployed.twin("stop-machine", "ag03", "ag04")
    with Client(Connection(deployed.controller)) as client:
        until(lambda: set(unreached(client, {"ag03", "ag04"}, 0)) == {"ag03", "ag04"})
        deployed.twin("start-machine", "ag03")
        assert set(unreached(client, {"ag03", "ag04", "other"}, 0)) == {"ag04"}
        until(lambda: "Failed to connect" in unreached(client, {"ag04"}, 0.2)["ag04"])  # after the next attempt
        deployed.twin("start-machine")
        assert unreached(client, {"ag03", "ag04"}, 0) == {}


@pytest.mark.parametrize(
    ("playbook", "options", "finding"),
    [
        ("cluster_test.yml", ("-e", "pod_cluster_test=always"), "ag03:5 <--> ag04:1: no cable"),
        ("cabling.yml", ("-e", "cabling_strict=true"), "Port Ethernet20/1 has no link: check the cable"),
        ("power.yml", ("-e", '{"pdu_device_power": {"machines": 5}}'), "the whole PDU would carry 80 kW"),
    ],
)
def test_a_failed_gate_prints_its_findings_only(deployed, playbook, options, finding):
    deployed.twin("stop-machine", "ag12")
    deployed.twin("fault", "unplug", "ag03:5")
    try:
        done = deployed.playbook(playbook, *options, check=False)
    finally:
        deployed.twin("heal")
        deployed.twin("start-machine")
    assert done.returncode == 2, done.stdout
    output = " ".join(done.stdout.split())
    assert finding in output
    # Ansible prints the message of a failed task twice, but the results of the tests have hundreds of lines.
    assert len(done.stdout.splitlines()) < 80, done.stdout


def test_a_second_concurrent_command_fails(deployed):
    descriptor = os.open(deployed.state, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        done = deployed.twin("down", check=False)
    finally:
        os.close(descriptor)
    assert done.returncode == 1
    assert f"Cannot lock {deployed.state}: another twin command uses it. Wait until it ends." in done.stderr
    assert len(deployed.processes()) == 2


def test_down_removes_everything_or_keeps_data(deployed):
    deployed.twin("down", "--keep-data")
    assert deployed.processes() == []
    assert sorted(path.name for path in deployed.state.iterdir()) == ["controller", "devices", "twin.json"]
    deployed.twin("up")
    assert len(deployed.status()["partitions"]) == 3
    assert "The twin is stopped; its state folder is removed." in deployed.twin("down").stdout
    assert deployed.processes() == []
    assert not deployed.state.exists()
    assert "nothing to stop" in deployed.twin("down").stdout


def test_a_busy_port_starts_no_process(own):
    own.twin("down")
    for host, port in ((own.controller, 8090), (f"127.{2 + own.octet}.1.16", 8080)):
        with socket.create_server((host, port)):
            done = own.twin("up", check=False)
        assert done.returncode == 1
        assert f"Cannot use {host}:{port}: process {os.getpid()} (" in done.stderr
        assert own.processes() == []
        assert not own.state.exists()
