# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for events of a controller: ansible-rulebook breaks nothing in a dry run, and heals a broken twin."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.client import Client, Connection, partition_status
from openipu.shared.vipu.contract import admin, virmgrpc
from tests.events.rulebook import START_SECONDS, Rulebook, state
from tests.integration.bringup.own_twin import OwnTwin
from tests.integration.vipu_servers import partition
from tests.waiting import until

pytestmark = pytest.mark.timeout(900)

Start = Callable[..., Rulebook]

# A rulebook that shows each event with its key.
SHOW = """
- name: Show
  hosts: all
  sources:
    - name: controller
      openipu.pod.vipu_events:
        api_host: "{{ vipu_api_host }}"
        state_file: "{{ event_state_file }}"
        poll_seconds: 0.5
  rules:
    - name: Show
      condition: event.vipu.type is defined
      action:
        debug:
          msg: "EVENT {{ event.vipu.type }} {{ event.vipu.id }} {{ event.vipu.key }} END"
"""


@pytest.fixture
def client(deployed: OwnTwin) -> Iterator[Client]:
    with Client(Connection(deployed.controller)) as made:
        yield made


@pytest.fixture
def healed(deployed: OwnTwin) -> Iterator[OwnTwin]:
    """Return the twin, and remove its faults after the test."""
    yield deployed
    deployed.twin("heal")
    with Client(Connection(deployed.controller)) as client:
        request = admin.SetAgentServiceRequest(id="ag08", service=admin.SERVICE_STATE_IN_SERVICE)
        client.call(client.admin.SetAgentService, request)


def variables(own: OwnTwin, folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "vipu_api_host": own.controller,
        "event_state_file": str(folder / "state.json"),
        "event_folder": str(folder / "tickets"),
        "event_lost_seconds": 3,
        "event_stuck_seconds": 3,
        "event_poll_seconds": 0.5,
        "event_dry_run": False,
        **more,
    }


def ready(client: Client, id: str) -> int:
    found: int = partition_status(client, id).ready_state
    return found


def in_service(client: Client, agent: str) -> bool:
    spec = client.call(client.admin.GetAgent, admin.GetAgentRequest(id=agent)).agent.spec
    return bool(spec.service == admin.SERVICE_STATE_IN_SERVICE)


def first_agent(client: Client, id: str) -> str:
    """Return the agent of the first IPU of a partition."""
    request = virmgrpc.GetPartitionIpuofConfigRequest(partition_id=id)
    config = client.call(client.user.GetPartitionIpuofConfig, request)
    address = re.search(r"127\.\d+\.1\.(\d+)", str(config))
    assert address, config
    return f"ag{int(address[1]):02}"


def started(rules: Rulebook, file: Path) -> None:
    """Wait until the source of a rulebook knows the partitions and agents."""
    rules.until(lambda: state(file).get("agents_known") and state(file)["partitions"], "the first state", START_SECONDS)


def test_rules_heal_a_partition_and_write_a_ticket(
    healed: OwnTwin, client: Client, rulebook: Start, tmp_path: Path
) -> None:
    dry, real = tmp_path / "dry", tmp_path / "real"
    # Without automatic resets, only a rule can make the partition ACTIVE again.
    options = admin.SetPartitionOptionsRequest(partition_id="vision", disable_auto_reset=True)
    client.call(client.tenant.SetPartitionOptions, options)
    rules = rulebook(
        "openipu.pod.controller",
        dry,
        healed.inventory.parent,
        healed.state,
        **variables(healed, dry, event_dry_run=True),
    )
    started(rules, dry / "state.json")
    healed.twin("fault", "ipu", first_agent(client, "vision"), "0")
    healed.twin("fault", "hang", "ag08")
    rules.shown("IPU-Machine ag08 of POD twin is Down")
    rules.shown("PLAY [Reset a partition]")
    rules.until(lambda: rules.text().count("PLAY RECAP") >= 3, "the end of all playbooks")
    rules.stop()
    assert ready(client, "vision") == virmgrpc.PS_ERROR
    assert not (dry / "tickets").exists()
    assert in_service(client, "ag08")

    given = variables(healed, real, event_cluster_test=True)
    rules = rulebook("openipu.pod.controller", real, healed.inventory.parent, healed.state, **given)
    rules.until(lambda: ready(client, "vision") == virmgrpc.PS_ACTIVE, "vision ACTIVE")
    [ticket] = rules.until(lambda: list((real / "tickets").glob("ticket-*.txt")), "a ticket")
    text = until(ticket.read_text)
    assert "IPU-Machine ag08 of POD twin is Down" in text
    assert "Place: rack1, rack unit 10" in text
    assert "Serial number: 8203921-0008" in text
    assert "Replace the machine if it does not start." in text
    assert "Find out why ag08 does not respond" in text  # an action of the rack report, from the cluster test
    assert (real / "tickets" / "rack-report.html").stat().st_size > 10_000
    assert not in_service(client, "ag08")
    healed.twin("heal")
    rules.until(lambda: state(real / "state.json")["agents"]["ag08"]["state"] == "Up", "ag08 Up")
    assert len(list((real / "tickets").glob("ticket-*.txt"))) == 1


def test_a_failed_cluster_test_and_a_partition_that_stays_stuck_are_notified(
    healed: OwnTwin, client: Client, rulebook: Start, tmp_path: Path
) -> None:
    rules = rulebook(
        "openipu.pod.controller",
        tmp_path,
        healed.inventory.parent,
        healed.state,
        **variables(healed, tmp_path, event_lost_seconds=3600),
    )
    started(rules, tmp_path / "state.json")
    tickets = tmp_path / "tickets"
    healed.twin("fault", "unplug", "ag15:7")
    request = admin.StartClusterTestRequest(cluster_id="cl0", tests=[admin.CLUSTER_TEST_CABLING])
    client.call(client.admin.StartClusterTest, request)
    [notice] = rules.until(lambda: list(tickets.glob("notice-cluster_test_done-cl0-*.txt")), "a notice of the test")
    assert "Cluster test of cl0 failed" in notice.read_text()
    assert "Cabling" in notice.read_text()
    assert "ag15" in notice.read_text()

    # The machine rejects resets, so neither the automatic ones nor that of the rule help.
    agent = first_agent(client, "notebook")
    healed.twin("fault", "reject", agent)
    healed.twin("fault", "ipu", agent, "0")
    healed.twin("fault", "ipu", agent, "1")
    [notice] = rules.until(
        lambda: list(tickets.glob("notice-partition_stuck-notebook-*.txt")), "a notice of the partition"
    )
    assert "Partition notebook is not ACTIVE" in notice.read_text()
    # Every reset fails, and ansible-rulebook reports each playbook that failed.
    rules.until(lambda: "run_playbook - ERROR" in rules.text(), "the end of the reset")
    rules.stop()
    assert rules.text().count("run_playbook - ERROR") == 1
    assert "TASK [Reset the partition and wait until it is ACTIVE: notebook]" in rules.text()


def test_restarts_neither_lose_nor_repeat_events(
    healed: OwnTwin, client: Client, rulebook: Start, tmp_path: Path
) -> None:
    file = tmp_path / "show.yml"
    file.write_text(SHOW)
    given = variables(healed, tmp_path)

    def run() -> Rulebook:
        return rulebook(file, tmp_path, healed.inventory.parent, healed.state, **given)

    def create(id: str) -> None:
        client.call(client.user.CreatePartition, partition(id, 1, "team-a"))
        until(lambda: ready(client, id) == virmgrpc.PS_ACTIVE)

    def remove(id: str) -> None:
        client.call(client.user.RemovePartition, virmgrpc.RemovePartitionRequest(partition_id=id), timeout=90)

    rules = run()
    started(rules, tmp_path / "state.json")
    create("extra1")
    rules.shown("EVENT partition_ready extra1")
    # Events are recorded after they are passed on.
    rules.until(lambda: "extra1" in state(tmp_path / "state.json")["partitions"], "the record of extra1")
    rules.stop()
    create("extra2")
    remove("extra1")
    rules = run()
    rules.shown("EVENT partition_removed extra1")
    rules.shown("EVENT partition_ready extra2")
    os.kill(healed.pid("controller"), signal.SIGKILL)
    healed.twin("up")
    remove("extra2")
    rules.shown("EVENT partition_removed extra2")
    create("extra3")
    rules.shown("EVENT partition_ready extra3")
    remove("extra3")
    rules.shown("EVENT partition_removed extra3")
    rules.stop()
    found = re.findall(r"EVENT (partition_\w+ extra\d) (\S+) END", rules.text())
    assert sorted(event for event, _key in found) == [
        *(f"partition_ready extra{n}" for n in (1, 2, 3)),
        *(f"partition_removed extra{n}" for n in (1, 2, 3)),
    ]
    assert len({key for _event, key in found}) == len(found)
