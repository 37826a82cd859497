# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of a whole rack twin, healthy and with faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from openipu.twin.launch.launcher import Twin
from openipu.twin.rack.contract import twin as api
from openipu.vipu.metrics.catalog import CONTROLLER, MACHINE
from tests.integration.bringup.own_twin import BIN, OwnTwin, run
from tests.integration.scraping import Scrape, check, get
from tests.waiting import until


class Monitored:
    """A running twin and the URLs of its metrics."""

    def __init__(self, twin: OwnTwin) -> None:
        self.twin = twin
        self.urls: dict[str, Any] = twin.status()["metrics"]

    def controller(self) -> Scrape:
        return Scrape(self.urls["controller"])

    def machine(self, agent: str) -> Scrape:
        return Scrape(self.urls["agents"][agent])

    def until(self, condition: Callable[[Scrape], bool]) -> Scrape:
        """Scrape the controller until a condition holds, and return that scrape."""
        found: Scrape = until(lambda: condition(scrape := self.controller()) and scrape, 20)
        return found

    def fault(self, *lines: str) -> None:
        """Apply faults like ``twin fault``, without a process for each."""
        Twin(self.twin.state).control("MakeFaults", api.MakeFaultsRequest(faults=lines))


@pytest.fixture(scope="module")
def monitored(own: OwnTwin) -> Monitored:
    own.twin("up")
    own.playbook("site.yml", "--tags", "vipu,partitions")
    return Monitored(own)


def test_all_documented_metrics_are_exported(monitored: Monitored) -> None:
    octet = monitored.twin.octet
    assert monitored.urls["controller"] == f"http://{monitored.twin.controller}:2112/metrics"
    assert monitored.urls["agents"]["ag16"] == f"http://127.{2 + octet}.1.16:2112/metrics"
    assert len(monitored.urls["agents"]) == 16
    assert f"Metrics           {monitored.urls['controller']}; " in monitored.twin.twin("status").stdout
    scrape = check(monitored.urls["controller"], CONTROLLER)
    for url in monitored.urls["agents"].values():
        check(url, MACHINE)
    assert scrape.get("vipu_agents", state="up") == 16
    assert scrape.get("vipu_partitions", state="active") == 3
    assert scrape.sum("vipu_allocation_used_ipus") == scrape.sum("vipu_cluster_used_ipus") == 34
    used = sum(monitored.machine(agent).sum("ipum_ipu_in_use") for agent in monitored.urls["agents"])
    assert used == 34


def test_faults_of_a_machine_appear_in_its_metrics(monitored: Monitored) -> None:
    errors = "ipum_link_corrected_errors_total"
    before = {agent: monitored.machine(agent) for agent in ("ag09", "ag10")}
    monitored.fault("errors ag09:8 327")
    for agent, link in (("ag09", "8"), ("ag10", "4")):  # both ends correct
        increase = monitored.machine(agent).sum(errors, link=link) - before[agent].sum(errors, link=link)
        assert increase == 327
    labels = {"ipu": "0", "sensor": "die"}
    normal = monitored.machine("ag11").get("ipum_ipu_temperature_celsius", **labels)
    monitored.fault("hot ag11 40")
    raised = monitored.machine("ag11").get("ipum_ipu_temperature_celsius", **labels)
    assert normal and raised == pytest.approx(normal + 40)
    monitored.fault("slow ag12 0.3")
    delay = monitored.machine("ag12").get("ipum_hardware_answer_seconds")
    assert delay and delay >= 0.3
    monitored.fault("unplug ag13:7")
    assert monitored.machine("ag13").get("ipum_link_up", link="7", kind="ipu_link") == 0
    assert monitored.machine("ag14").get("ipum_link_up", link="3", kind="ipu_link") == 0
    monitored.fault("heal")
    assert monitored.machine("ag13").get("ipum_link_up", link="7", kind="ipu_link") == 1
    assert monitored.machine("ag11").get("ipum_ipu_temperature_celsius", **labels) == normal


def test_a_lost_machine_and_its_return(monitored: Monitored) -> None:
    before = monitored.controller()
    monitored.fault("stop ag03")
    with pytest.raises(ConnectionRefusedError):
        get(monitored.urls["agents"]["ag03"])
    lost = monitored.until(lambda scrape: scrape.get("vipu_partitions", state="error") == 1)
    assert lost.get("vipu_agent_up", agent="ag03") == 0
    assert lost.get("vipu_agent_up", agent="ag04") == 1
    assert lost.get("vipu_allocation_unreachable_ipus", cluster="cl0", allocation="team-a") == 4
    assert [labels["partition"] for labels, _ in lost.all("vipu_partition_error")] == ["vision"]
    monitored.fault("start ag03")
    recovered = monitored.until(lambda scrape: scrape.get("vipu_partitions", state="active") == 3)
    assert recovered.get("vipu_agent_up", agent="ag03") == 1
    assert recovered.all("vipu_partition_error") == []
    for name, more in (("vipu_partition_losses_total", 1), ("vipu_partition_auto_resets_total", 1)):
        assert recovered.sum(name) - before.sum(name) >= more
    assert recovered.sum("vipu_agent_losses_total") - before.sum("vipu_agent_losses_total") == 1
    # Its agent and its counters restarted.
    assert (monitored.machine("ag03").get("ipum_start_time_seconds") or 0) > (
        monitored.machine("ag04").get("ipum_start_time_seconds") or 0
    )


def test_a_failed_cluster_test_appears_in_the_metrics(monitored: Monitored) -> None:
    monitored.fault("version ag08 Virm 1.17.0")
    command = (BIN / "vipu-admin", "--api-host", monitored.twin.controller, "test", "cluster", "cl0")
    assert run(*command, check=False).returncode
    scrape = monitored.controller()
    assert scrape.get("vipu_cluster_test_ok", cluster="cl0", test="Version") == 0
    assert scrape.get("vipu_cluster_test_failures", cluster="cl0", test="Version", kind="version") == 1
    assert scrape.get("vipu_cluster_test_ok", cluster="cl0", test="Cabling") == 1
    assert monitored.machine("ag08").get("ipum_component_info", component="Virm", version="1.17.0") == 1
    monitored.fault("heal")
    run(*command)
    assert monitored.controller().get("vipu_cluster_test_ok", cluster="cl0", test="Version") == 1
