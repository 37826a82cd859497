# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of a machine, as its agent exports them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from openipu.shared.pod.topology import CableKind, Layout
from openipu.twin.cables.wiring import Place, Wiring
from openipu.twin.machine.hardware import TwinHardware
from openipu.vipu.agent import metrics
from openipu.vipu.agent.hardware import HardwareError, Share, ShareIpu
from openipu.vipu.agent.metrics import MachineMetrics, quantity
from openipu.vipu.domain.model import GwRouting, Routing, SyncType
from openipu.vipu.metrics.catalog import MACHINE
from tests.event_loop import LoopThread
from tests.waiting import until


class Lab:
    """Machine of a cabled pair, and its metrics; the event loop runs in another thread."""

    def __init__(self) -> None:
        self._thread = LoopThread()
        self.loop, self.do = self._thread.loop, self._thread.run
        wiring = Wiring()
        wiring.connect(Layout(2, 1, "mesh"), ["ag01", "ag02"])
        self.hardware, self.other = (
            TwinHardware("127.83.0.1", "", "8203921-0007", agent_id=id, wiring=wiring) for id in ("ag01", "ag02")
        )
        self.wiring = wiring
        self.collector = MachineMetrics(self.hardware, self.loop, lambda: 2)

    def scrape(self) -> dict[str, dict[tuple[str, ...], float]]:
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in self.collector.collect():
            for sample in family.samples:
                labels = tuple(sample.labels[label] for label in MACHINE[sample.name].labels)
                found.setdefault(sample.name, {})[labels] = sample.value
        return found

    def waiting(self) -> int:
        """Return the number of scrapes that wait for a reading."""
        coroutines = [task.get_coro() for task in asyncio.all_tasks(self.loop)]
        return sum("_shared" in repr(coroutine) for coroutine in coroutines)

    def close(self) -> None:
        self._thread.stop()


def _port(agent: str, number: int) -> Place:
    return Place(agent, CableKind.IPU_LINK, number)


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab()
    yield made
    made.close()


def test_metrics_of_a_new_machine(lab: Lab) -> None:
    found = lab.scrape()
    assert found["ipum_hardware_up"] == {(): 1}
    assert found["ipum_controllers"] == {(): 2}
    assert found["ipum_machine_info"] == {("8203921-0007", "GC-MK2-M2000-01", "ipum-p2"): 1}
    assert found["ipum_component_info"][("IPU firmware", "2.4.4")] == 1
    assert found["ipum_partitions"] == {(): 0}
    ipus = [(str(ipu),) for ipu in range(4)]
    assert found["ipum_ipu_ready"] == dict.fromkeys(ipus, 1)
    assert found["ipum_ipu_in_use"] == dict.fromkeys(ipus, 0)
    assert found["ipum_ipu_clock_hertz"] == dict.fromkeys(ipus, 1.33e9)
    assert set(found["ipum_ipu_temperature_celsius"]) == {(ipu, at) for (ipu,) in ipus for at in ("die", "board")}
    assert found["ipum_rnic_pfc_classes"] == {("eth1",): 8}
    # The lower machine of two: only ports 5 to 8 have cables, to the upper one.
    up = {link for (link, kind), value in found["ipum_link_up"].items() if kind == "ipu_link" and value}
    assert up == {"5", "6", "7", "8"}
    assert {port for (kind, port), value in found["ipum_port_cabled"].items() if kind == "ipu_link" and value} == up
    assert len(found["ipum_link_corrected_errors_total"]) == len(found["ipum_link_up"]) == 16 + 8 + 2
    assert set(found["ipum_link_corrected_errors_total"].values()) == {0}


def test_metrics_of_partitions_and_faults(lab: Lab) -> None:
    before = lab.scrape()
    share = Share(
        "p", (ShareIpu(0, 0, 0, 0),), Routing.DNC, GwRouting.UNDEFINED, SyncType.GS2_DEFAULT, reconfigurable=False
    )
    lab.do(lab.hardware.configure(share, reset=False))
    lab.hardware.fail_ipu(3, "no reason")
    lab.hardware.temperature_offset = 30.0
    lab.hardware.broken_links.add("internal4")
    lab.hardware.pfc["eth1"] = (0, 2)
    lab.wiring.unplug(_port("ag01", 5))
    found = lab.scrape()
    assert found["ipum_partitions"] == {(): 1}
    assert found["ipum_ipu_in_use"] == {("0",): 1, ("1",): 0, ("2",): 0, ("3",): 0}
    assert found["ipum_ipu_ready"] == {("0",): 1, ("1",): 1, ("2",): 1, ("3",): 0}
    temperature_rise = {
        labels: value - before["ipum_ipu_temperature_celsius"][labels]
        for labels, value in found["ipum_ipu_temperature_celsius"].items()
    }
    assert temperature_rise[("1", "die")] == temperature_rise[("1", "board")] == 30
    assert temperature_rise[("0", "die")] > 30
    assert found["ipum_ipu_power_watts"][("0",)] > found["ipum_ipu_power_watts"][("1",)]
    assert found["ipum_link_up"][("internal4", "internal")] == 0
    assert found["ipum_link_up"][("5", "ipu_link")] == 0
    assert found["ipum_port_cabled"][("ipu_link", "5")] == 0
    assert found["ipum_rnic_pfc_classes"] == {("eth1",): 2}


def test_corrected_errors_add_up_until_the_machine_restarts(lab: Lab) -> None:
    lab.wiring.degrade(_port("ag01", 6), corrected_errors=327)
    lab.hardware.noisy_links["internal2"] = 5
    for _ in range(3):
        lab.do(lab.hardware.run_traffic({5, 6}))
    errors = lab.scrape()["ipum_link_corrected_errors_total"]
    assert {labels: value for labels, value in errors.items() if value} == {
        ("6", "ipu_link"): 981,
        ("internal2", "internal"): 15,
    }
    lab.wiring.unplug(_port("ag02", 2))  # its other end
    lab.do(lab.hardware.run_traffic({6}))
    assert lab.scrape()["ipum_link_corrected_errors_total"][("6", "ipu_link")] == 981
    lab.hardware.reboot()
    assert set(lab.scrape()["ipum_link_corrected_errors_total"].values()) == {0}


def test_a_machine_that_does_not_respond_is_down(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "READ_TIMEOUT", 1.0)
    lab.hardware.hang()
    found = lab.scrape()  # returns although the hardware never responds
    assert set(found) == {"ipum_build_info", "ipum_start_time_seconds", "ipum_controllers", "ipum_hardware_up"}
    assert found["ipum_hardware_up"] == {(): 0}
    monkeypatch.setattr(metrics, "READ_TIMEOUT", 60.0)  # the scrapes below must not depend on the load of this host
    lab.hardware.heal()
    assert lab.scrape()["ipum_hardware_up"] == {(): 1}


def test_the_response_time_includes_delays(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "READ_TIMEOUT", 60.0)
    delays: list[float] = []
    sleep = asyncio.sleep

    async def recorded(seconds: float) -> None:
        start = time.monotonic()
        await sleep(seconds)
        delays.append(time.monotonic() - start)

    lab.hardware.response_delay = 0.1
    monkeypatch.setattr(asyncio, "sleep", recorded)
    found = lab.scrape()
    assert delays
    assert found["ipum_hardware_answer_seconds"][()] >= max(delays)


def test_hardware_that_fails(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> None:
        raise HardwareError("the board does not react")

    monkeypatch.setattr(lab.hardware, "links", broken)
    assert lab.scrape()["ipum_hardware_up"] == {(): 0}


def test_concurrent_scrapes_share_a_reading(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "READ_TIMEOUT", 60.0)
    read: Callable[[], Any] = lab.hardware.info
    readings = []

    async def counted() -> Any:
        readings.append(1)
        return await read()

    monkeypatch.setattr(lab.hardware, "info", counted)
    lab.hardware.hang()
    scrapes = [threading.Thread(target=lab.scrape) for _ in range(5)]
    for thread in scrapes:
        thread.start()
    until(lambda: lab.waiting() == len(scrapes), what="all scrapes wait for one reading")
    lab.loop.call_soon_threadsafe(lab.hardware.heal)
    for thread in scrapes:
        thread.join(10)
    assert len(readings) == 1
    lab.scrape()
    assert len(readings) == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("29.6 C", 29.6),
        ("-5C", -5),
        ("1330MHz", 1.33e9),
        ("1.6 GHz", 1.6e9),
        ("12.6 W", 12.6),
        ("99.96%", 0.9996),
        ("N/A", None),
        ("", None),
        ("29.6", None),
        ("29.6 F", None),
        ("1e5 W", None),
        ("٣ W", None),
    ],
)
def test_quantities(text: str, value: float | None) -> None:
    units = {unit: power for each in metrics._UNITS.values() for unit, power in each.items()}
    assert quantity(text, units) == value
