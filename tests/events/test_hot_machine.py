# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule for hot IPU-Machines, with a twin: the reading of a hot machine becomes an alert, and the rule drains it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from openipu.shared.vipu.client import Client, Connection
from openipu.shared.vipu.contract import admin, virmgrpc
from tests import ROOT
from tests.events.rulebook import Rulebook
from tests.events.test_alertmanager_rules import TOKEN, listening, notification, post
from tests.events.test_controller_rules import first_agent, in_service, ready
from tests.integration.bringup.own_twin import OwnTwin
from tests.integration.scraping import Scrape
from tests.integration.vipu_servers import partition
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.timeout(900)

FAILED, STAYING = "failed", "staying"
HALF = 2  # IPUs of a machine with two partitions
DEGREES = "60"
THRESHOLDS = yaml.safe_load((ROOT / "roles/monitoring/vars/main.yml").read_text())["monitoring_default_thresholds"]


@pytest.fixture
def client(deployed: OwnTwin) -> Iterator[Client]:
    with Client(Connection(deployed.controller)) as made:
        yield made


@pytest.fixture
def machine(deployed: OwnTwin, client: Client) -> Iterator[str]:
    """Yield a machine with a failed partition without automatic resets, and an ACTIVE one that is not relocatable."""
    for id, relocatable in ((FAILED, True), (STAYING, False)):
        creation = partition(id, HALF, "team-a")
        creation.relocatable, creation.disable_auto_reset = relocatable, True
        client.call(client.user.CreatePartition, creation)
        until(lambda id=id: ready(client, id) == virmgrpc.PS_ACTIVE)
    agent = first_agent(client, FAILED)
    assert first_agent(client, STAYING) == agent
    deployed.twin("fault", "ipu", agent, "0")
    until(lambda: ready(client, FAILED) == virmgrpc.PS_ERROR)
    yield agent
    deployed.twin("heal")
    request = admin.SetAgentServiceRequest(id=agent, service=admin.SERVICE_STATE_IN_SERVICE)
    client.call(client.admin.SetAgentService, request)
    for id in (FAILED, STAYING):
        client.call(client.user.RemovePartition, virmgrpc.RemovePartitionRequest(partition_id=id, force=True))


def alerts(twin: OwnTwin) -> list[dict[str, Any]]:
    """Return the alerts IpuHot of the present readings, as Alertmanager sends them."""
    found = []
    for agent, url in twin.status()["metrics"]["agents"].items():
        readings = [(value, labels) for labels, value in Scrape(url).all("ipum_ipu_temperature_celsius")]
        value, labels = max(readings, key=lambda each: each[0])
        if value > THRESHOLDS["ipu_celsius"]:
            found.append(
                {
                    "status": "firing",
                    "labels": {"alertname": "IpuHot", "host": agent, "ipu": labels["ipu"]},
                    "annotations": {"description": f"IPU {labels['ipu']} of {agent} is at {value} degrees Celsius."},
                    "startsAt": "2026-01-01T00:00:00Z",
                    "fingerprint": agent,
                }
            )
    return found


def test_a_hot_machine_is_drained(
    deployed: OwnTwin, client: Client, machine: str, rulebook: Callable[..., Rulebook], tmp_path: Path
) -> None:
    assert alerts(deployed) == []
    deployed.twin("fault", "hot", machine, DEGREES)
    [alert] = until(lambda: alerts(deployed))
    assert alert["labels"]["host"] == machine

    # Check mode is not overridden by the variables of the rules.
    for playbook, settings in (
        ("machine_drain.yml", f"machine_name={machine} machine_dry_run=false"),
        ("event_reset.yml", f"event_partition={FAILED} event_dry_run=false"),
    ):
        deployed.playbook(playbook, "--check", "-e", settings, seconds=300)
    assert in_service(client, machine)
    assert ready(client, FAILED) == virmgrpc.PS_ERROR

    port, folder = free_port(), tmp_path / "notices"
    given = {"event_webhook_port": port, "event_webhook_token": TOKEN, "event_folder": str(folder)}
    inventory = deployed.inventory.parent
    rules = rulebook("openipu.pod.alertmanager", tmp_path, inventory, deployed.state, **given, event_dry_run=False)
    listening(rules, port)
    assert post(port, notification(alert)) == 200
    rules.until(lambda: not in_service(client, machine), "the machine out of service")
    report = folder / f"drain-{machine}.txt"
    text = rules.until(lambda: report.exists() and report.read_text(), "the list of partitions that stay")
    rules.stop()
    assert f"Partition {FAILED} of allocation team-a stays: its automatic resets are disabled." in text
    assert f"Partition {STAYING} of allocation team-a stays: it is not relocatable." in text
    [notice] = folder.glob("notice-hot-*.txt")
    assert f"IPU-Machine {machine} is too hot" in notice.read_text()
    assert "degrees Celsius" in notice.read_text()
    assert ready(client, FAILED) == virmgrpc.PS_ERROR
    assert (ready(client, STAYING), first_agent(client, STAYING)) == (virmgrpc.PS_ACTIVE, machine)
