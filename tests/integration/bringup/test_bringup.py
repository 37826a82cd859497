# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``make bring-up`` and ``make twin-down`` do, on a twin of our own."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import socket

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Client, Connection
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc
from own_twin import BIN, ROOT, OwnTwin, changed, run

# That change something the first time: two switches, two PDUs; the controller, the gate, partitions, the picture.
TASKS = 8


def content(own: OwnTwin) -> str:
    """A text that changes with every write to the controller's database."""
    digest = hashlib.sha256()
    for path in sorted((own.state / "controller").iterdir()):
        if not path.name.endswith("-shm"):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def test_from_nothing_to_active_partitions_and_nothing_twice(own):
    up = own.twin("up")
    assert f"The twin is up: 16 IPU-Machines, 2 switches, 2 PDUs, controller {own.controller}:8090." in up.stdout
    assert own.state.stat().st_mode & 0o777 == 0o700

    # Check mode before anything is there says what would come, and makes none of it.
    untouched = content(own)
    assert changed(own.playbook("site.yml", "--check", "--diff")) == TASKS
    assert content(own) == untouched
    assert own.status()["agents"] == []

    first = own.playbook("site.yml")
    assert changed(first) == TASKS
    assert "agents: 16 of 16 up" in first.stdout
    assert "partition vision: ACTIVE, 16 IPUs of team-a, routing DNC" in first.stdout

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
    assert "is up already" in own.twin("up").stdout


def test_the_summary_tells_how_to_go_on(deployed):
    text = deployed.twin("status").stdout
    assert f"vipu --api-host {deployed.controller} list partitions" in text
    assert "16 of 16 up" in text
    assert "vision" in text
    assert "down --state-dir" in text


def test_the_playbooks_are_the_collections_too(deployed):
    done = run(BIN / "ansible-playbook", "openipu.pod.site", "-i", deployed.inventory, state=deployed.state)
    assert changed(done) == 0


def test_a_partition_that_was_removed_by_hand_comes_back(deployed):
    with Client(Connection(deployed.controller)) as client:
        client.call(client.user.RemovePartition, virmgrpc.RemovePartitionRequest(partition_id="language"))
    assert {p["id"] for p in deployed.status()["partitions"]} == {"vision", "notebook"}
    assert changed(deployed.playbook("partitions.yml", "--check")) == 1
    assert {p["id"] for p in deployed.status()["partitions"]} == {"vision", "notebook"}
    assert changed(deployed.playbook("partitions.yml")) == 1
    assert {p["id"]: p["state"] for p in deployed.status()["partitions"]}["language"] == "ACTIVE"


def test_a_tenant_gets_its_own_partitions_only(deployed):
    with Client(Connection(deployed.controller)) as client:
        for id in ("vision", "notebook"):
            client.call(client.user.RemovePartition, virmgrpc.RemovePartitionRequest(partition_id=id))
    deployed.playbook("partitions.yml", "-e", '{"vipu_allocations": ["team-b"]}')
    assert {p["id"] for p in deployed.status()["partitions"]} == {"language", "notebook"}
    assert changed(deployed.playbook("partitions.yml")) == 1


def test_the_unchanged_run_is_the_same_through_modules(deployed):
    done = deployed.playbook("site.yml", "-e", "openipu_fast_path=false")
    assert changed(done) == 0


def test_a_stopped_machine_is_told_in_one_sentence(deployed):
    deployed.twin("stop-machine", "ag03")
    try:
        done = deployed.playbook("site.yml", check=False)
        assert done.returncode == 2
        sentence = (
            f"Not ready for a bring-up. Agent ag03 (127.{2 + deployed.octet}.1.3:8080, connection refused) "
            "does not answer: see whether the IPU-Machine is on and in the network."
        )
        assert sentence.lower() in " ".join(done.stdout.split()).lower()
        assert "ag03: has no power." in deployed.twin("status").stdout
    finally:
        deployed.twin("start-machine", "ag03")
    assert changed(deployed.playbook("site.yml", "--tags", "preflight")) == 0


def test_a_fault_is_set_and_healed(deployed):
    assert "Done: hang ag05" in deployed.twin("fault", "hang", "ag05").stdout
    assert "ag05: hangs." in deployed.twin("faults").stdout
    assert "Done: heal" in deployed.twin("fault", "heal").stdout
    assert "Nothing is wrong." in deployed.twin("faults").stdout
    done = deployed.twin("fault", "hang", "ag99", check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == "Error: There is no machine 'ag99' in this rack."


@pytest.mark.parametrize("name", ["controller", "agents"])
def test_a_twin_that_crashed_in_part_is_mended(deployed, name):
    other = {"controller": "agents", "agents": "controller"}[name]
    kept = deployed.pid(other)
    os.kill(deployed.pid(name), signal.SIGKILL)
    done = deployed.twin("status", check=False)
    title = {"controller": "the V-IPU controller", "agents": "the rack's agents"}[name]
    mend = f"'twin up --inventory {deployed.inventory} --state-dir {deployed.state}' mends it."
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: Half of the twin in {deployed.state} is down, {title} (see {deployed.state / name}.log): {mend}\n"
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
        assert "machines have changed" in deployed.twin("up").stdout
        assert deployed.pid("agents") != before[0]
        assert deployed.pid("controller") == before[1]
    finally:
        table.write_text(text)
        deployed.twin("up")


def test_two_commands_at_once_do_not_meet(deployed):
    descriptor = os.open(deployed.state, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        done = deployed.twin("down", check=False)
    finally:
        os.close(descriptor)
    assert done.returncode == 1
    assert "Another twin command is at work" in done.stderr
    assert len(deployed.processes()) == 2


def test_down_leaves_nothing_and_keeps_data_when_told(deployed):
    deployed.twin("down", "--keep-data")
    assert deployed.processes() == []
    assert sorted(path.name for path in deployed.state.iterdir()) == ["controller", "devices", "twin.json"]
    deployed.twin("up")
    assert len(deployed.status()["partitions"]) == 3
    assert "has left nothing behind" in deployed.twin("down").stdout
    assert deployed.processes() == []
    assert not deployed.state.exists()
    assert "nothing to stop" in deployed.twin("down").stdout


def test_a_busy_port_leaves_nothing_half_started(own):
    own.twin("down")
    for host, port in ((own.controller, 8090), (f"127.{2 + own.octet}.1.16", 8080)):
        with socket.create_server((host, port)):
            done = own.twin("up", check=False)
        assert done.returncode == 1
        assert f"Port {port} on {host} is taken by process {os.getpid()}" in done.stderr
        assert own.processes() == []
        assert not own.state.exists()


def test_a_preflight_without_a_controller_tells_every_problem(own):
    own.twin("down")
    done = own.playbook("site.yml", "--tags", "preflight", check=False)
    text = " ".join(done.stdout.split())
    assert done.returncode == 2
    assert f"The V-IPU controller at {own.controller}:8090 does not answer (connection refused): check that" in text
    assert "and 12 more do not answer: see whether the IPU-Machines are on and in the network." in text


def test_an_inventory_without_a_pod_is_told():
    playbook = ROOT / "playbooks/site.yml"
    done = run(BIN / "ansible-playbook", playbook, "-i", "localhost,", check=False)
    assert done.returncode == 2
    assert "The inventory describes no POD with a controller" in " ".join(done.stdout.split())


def test_the_real_rack_to_copy_is_in_order():
    playbook = ROOT / "playbooks/site.yml"
    run(BIN / "ansible-playbook", playbook, "-i", ROOT / "inventory/pod64", "--syntax-check")
