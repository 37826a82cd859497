# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/ipum_upgrade.yml on a twin of three IPU-Machines: one at a time, or none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.client import Client, Connection
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.twin.launch.launcher import Twin
from openipu.twin.rack.contract import twin as api
from tests.integration.bringup.own_twin import BIN, OwnTwin, changed, octet, run
from tests.waiting import until

HERE = Path(__file__).parent
OLD, NEW = {"GWSW": "2.0.5", "Virm": "1.18.0"}, {"GWSW": "2.1.0", "Virm": "1.19.0"}
SECRET = "gw-passw0rd"


class Upgrades:
    """A twin, and a release for the upgrade of its machines."""

    def __init__(self, folder: Path) -> None:
        state = folder / "state"
        self.twin = OwnTwin(state / "pod" / "pod.yml", state, octet(9))
        self.folder = folder / "release"
        self.folder.mkdir()
        offset = ("--offset", str(self.twin.octet))
        run(BIN / "twin", "up", "--state-dir", state, "--machines", "3", *offset)
        listed = json.loads(
            run(BIN / "ansible-inventory", "-i", self.twin.inventory, "--list").stdout,
            object_hook=lambda found: found.get("__ansible_unsafe", found),
        )
        self.machines: list[str] = listed["machines"]["hosts"]
        hosts = listed["_meta"]["hostvars"]
        entries = [
            {"name": name, "gw_ip": hosts[name]["ansible_host"], "gw_password": SECRET} for name in self.machines
        ]
        program = [sys.executable, str(HERE / "twin_machine.py"), str(self.folder)]
        (self.folder / "config.json").write_text(json.dumps({"stand_in": program, "machines": entries}))
        self.release(OLD)

    def release(self, versions: dict[str, str], **faults: str) -> None:
        """Set the versions of the release, and the faults by machine."""
        (self.folder / "release.json").write_text(json.dumps(versions))
        (self.folder / "faults.json").write_text(json.dumps(faults))
        (self.folder / "calls").write_text("")

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def run(self, versions: dict[str, str], *options: str, **settings: object) -> subprocess.CompletedProcess[str]:
        settings = {
            "virm_agent_upgrade_versions": versions,
            "virm_agent_upgrade_timeout": 20,
            "virm_agent_rack_tool": str(HERE / "rack_tool.py"),
            "virm_agent_rack_tool_config": str(self.folder / "config.json"),
            **settings,
        }
        options = ("-e", json.dumps(settings), *options)
        done = self.twin.playbook("ipum_upgrade.yml", *options, check=False, seconds=200)
        assert SECRET not in done.stdout + done.stderr
        return done

    def versions(self) -> list[str]:
        """Return the GWSW version of each machine, as the controller reports it."""
        return [agent.versions["GWSW"] for agent in self._agents()]

    def reset(self) -> None:
        """Reset all machines: up, with the old release, without faults and partitions."""
        rack = Twin(self.twin.state)
        rack.control("MakeFaults", api.MakeFaultsRequest(faults=["heal"]))
        # Machines report their versions to the controller when they start.
        rack.control("StopMachines", api.MachineRequest(agent_ids=self.machines))
        with self._client() as client:
            for partition in client.call(client.user.ListPartitions, virmgrpc.ListPartitionsRequest()).partitions:
                request = virmgrpc.RemovePartitionRequest(partition_id=partition.id, force=True)
                client.call(client.user.RemovePartition, request)
        rack.control("StartMachines", api.MachineRequest(agent_ids=self.machines))
        until(lambda: all(agent.state == admin.AGENT_STATE_UP for agent in self._agents()))
        assert self.versions() == ["2.0.5"] * len(self.machines)
        self.release(NEW)

    def create_partition(self, id: str, **options: Any) -> None:
        """Create a partition of one IPU, and wait until it is ACTIVE."""
        with self._client() as client:
            (allocation,) = client.call(client.tenant.ListAllocations, admin.ListAllocationsRequest()).allocations
            requirements = virmgrpc.PartitionRequirements(id=id, size=1, allocation_id=allocation.spec.id)
            client.call(
                client.user.CreatePartition, virmgrpc.CreatePartitionRequest(requirements=requirements, **options)
            )
        until(lambda: all(each["state"] == "ACTIVE" for each in self.twin.status()["partitions"]))

    def _agents(self) -> list[Any]:
        with self._client() as client:
            return list(client.call(client.admin.ListAgents, admin.ListAgentsRequest()).agents)

    def _client(self) -> Client:
        return Client(Connection(self.twin.controller))


def output(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join(done.stdout.split())


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgrades]:
    made = Upgrades(tmp_path_factory.mktemp("upgrade"))
    made.twin.playbook("vipu_objects.yml")
    yield made
    made.twin.twin("down")


@pytest.fixture
def upgrades(rack: Upgrades) -> Upgrades:
    """Return the rack after a reset."""
    rack.reset()
    return rack


def test_machines_are_upgraded_one_at_a_time_and_only_once(upgrades: Upgrades) -> None:
    checked = upgrades.run(NEW, "--check")
    assert checked.returncode == 0, checked.stdout
    assert upgrades.calls == []

    done = upgrades.run(NEW)
    assert done.returncode == 0, done.stdout
    assert upgrades.calls == [f"upgrade {name}" for name in upgrades.machines]
    assert upgrades.versions() == ["2.1.0"] * 3

    again = upgrades.run(NEW)
    assert again.returncode == 0, again.stdout
    assert changed(again) == 0
    assert len(upgrades.calls) == 3


def test_a_failure_stops_the_upgrade_and_the_next_run_resumes_there(upgrades: Upgrades) -> None:
    one, two, three = upgrades.machines
    upgrades.release(NEW, **{two: "rejects"})
    done = upgrades.run(NEW)
    assert done.returncode == 2
    assert (
        f"Cannot upgrade failure domain '{two}' ({two}): Cannot run {HERE / 'rack_tool.py'} upgrade for {two} on "
        f"localhost: {two}: upgrade failed: the standby image cannot be written. Check virm_agent_rack_tool_config. "
        f"Upgraded: {one}. Not started: {three}. "
        f"Repair {two}"
    ) in output(done)
    assert upgrades.calls == [f"upgrade {name}" for name in (one, two)]
    assert upgrades.versions() == ["2.1.0", "2.0.5", "2.0.5"]

    upgrades.release(NEW)
    assert upgrades.run(NEW).returncode == 0
    assert upgrades.calls == [f"upgrade {name}" for name in (two, three)]
    assert upgrades.versions() == ["2.1.0"] * 3


def test_a_machine_that_does_not_return_is_named(upgrades: Upgrades) -> None:
    one, two, *_ = upgrades.machines
    upgrades.release(NEW, **{two: "is lost"})
    done = upgrades.run(NEW, virm_agent_upgrade_timeout=12)  # a busy controller detects the loss late
    assert done.returncode == 2
    assert f"Cannot upgrade failure domain '{two}' ({two}): agent '{two}' is Down 12 seconds after" in output(done), (
        output(done)
    )
    assert upgrades.calls == [f"upgrade {one}", f"upgrade {two}"]
    rejected = upgrades.run(NEW)
    assert f"Cannot upgrade IPU-Machines: {two} is Down" in output(rejected)


def test_missing_versions_are_reported(upgrades: Upgrades) -> None:
    upgrades.release(OLD)
    done = upgrades.run(NEW, virm_agent_upgrade_timeout=3)
    assert "the agents are up but do not report the desired versions (GWSW 2.1.0, Virm 1.19.0)" in output(done)
    assert upgrades.calls == [f"upgrade {upgrades.machines[0]}"]


def test_cluster_tests_gate_every_machine(upgrades: Upgrades) -> None:
    one, *_ = upgrades.machines
    upgrades.release(NEW, **{one: "loses a cable"})
    done = upgrades.run(NEW)
    assert done.returncode == 2
    assert f"({one}): the machines are upgraded and up, but cluster 'cl1' did not pass its tests: " in output(done)
    assert f"{one}" in upgrades.calls[0]
    assert len(upgrades.calls) == 1
    rejected = upgrades.run(NEW)
    assert "Cannot upgrade IPU-Machines: cluster 'cl1' did not pass its tests: " in output(rejected)
    assert len(upgrades.calls) == 1


def test_a_partition_that_must_not_move_blocks_the_upgrade(upgrades: Upgrades) -> None:
    upgrades.twin.playbook("partitions.yml")
    # The controller never resets this partition automatically.
    upgrades.create_partition("quiet", disable_auto_reset=True)
    rejected = upgrades.run(NEW)
    assert rejected.returncode == 2
    assert "Cannot upgrade IPU-Machines: Partition 'p1-1' is on " in output(rejected)
    assert "make it relocatable, or interrupt it with virm_agent_upgrade_partitions=interrupt." in output(rejected)
    assert upgrades.calls == []

    done = upgrades.run(NEW, virm_agent_upgrade_partitions="interrupt")
    assert done.returncode == 0, done.stdout
    assert upgrades.versions() == ["2.1.0"] * 3
    found = {partition["id"]: partition["state"] for partition in upgrades.twin.status()["partitions"]}
    assert found == {"p1-1": "ACTIVE", "quiet": "ACTIVE"}
    again = upgrades.run(NEW)
    assert again.returncode == 0, again.stdout
    assert changed(again) == 0


def test_a_machine_missing_in_the_rack_tool_config_is_reported(upgrades: Upgrades) -> None:
    config = json.loads((upgrades.folder / "config.json").read_text())
    smaller = upgrades.folder / "smaller.json"
    smaller.write_text(json.dumps({**config, "machines": config["machines"][1:]}))
    done = upgrades.run(NEW, virm_agent_rack_tool_config=str(smaller))
    assert f"has no entry for {upgrades.machines[0]}, by name or address" in output(done)
    assert upgrades.calls == []
