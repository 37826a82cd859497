# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of an IPU-Machine, read from its hardware at each scrape."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

import structlog
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from openipu.vipu.agent.hardware import CablePort, Hardware, LinkState, MachineInfo
from openipu.vipu.metrics.catalog import MACHINE
from openipu.vipu.metrics.meters import Samples

READ_TIMEOUT = 5.0  # seconds; the default scrape timeout of Prometheus is ten

_OF_AGENT = ("ipum_build_info", "ipum_start_time_seconds", "ipum_controllers", "ipum_hardware_up")
_OF_HARDWARE = (
    "ipum_hardware_answer_seconds",
    "ipum_machine_info",
    "ipum_component_info",
    "ipum_partitions",
    "ipum_ipu_info",
    "ipum_ipu_ready",
    "ipum_ipu_in_use",
    "ipum_ipu_temperature_celsius",
    "ipum_ipu_power_watts",
    "ipum_ipu_clock_hertz",
    "ipum_ipu_utilisation_ratio",
    "ipum_link_up",
    "ipum_link_corrected_errors_total",
    "ipum_port_cabled",
    "ipum_rnic_pfc_classes",
)

# Attribute of an IPU -> its metric and further labels. Values end with a unit: "29.6 C", "1330MHz".
_MEASURED = {
    "average die temp": ("ipum_ipu_temperature_celsius", ("die",)),
    "average board temp": ("ipum_ipu_temperature_celsius", ("board",)),
    "ipu power": ("ipum_ipu_power_watts", ()),
    "clock": ("ipum_ipu_clock_hertz", ()),
    "ipu utilisation": ("ipum_ipu_utilisation_ratio", ()),
}
# Unit -> power of ten to convert it to the unit of the metric.
_UNITS = {
    "ipum_ipu_temperature_celsius": {"C": 0},
    "ipum_ipu_power_watts": {"W": 0, "mW": -3},
    "ipum_ipu_clock_hertz": {"Hz": 0, "kHz": 3, "MHz": 6, "GHz": 9},
    "ipum_ipu_utilisation_ratio": {"%": -2},
}
_QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?) ?([A-Za-z%]+)", re.ASCII)
# Attribute -> value of an IPU that is ready.
_READY = {"ipu state": "ready", "ipu error state": "no errors"}

_log: structlog.stdlib.BoundLogger = structlog.get_logger("virm-agent")


@dataclass(frozen=True, slots=True)
class Reading:
    """Data read from a machine. ``seconds``: duration of the read."""

    info: MachineInfo
    attributes: Mapping[int, Mapping[str, str]]
    shares: Mapping[str, Collection[int]]
    links: Sequence[LinkState]
    cables: Sequence[CablePort]
    pfc: Mapping[str, Sequence[int]]
    seconds: float


async def read(hardware: Hardware) -> Reading:
    """Read all data of a machine concurrently. Raises TimeoutError and the errors of the hardware."""
    start = time.monotonic()
    async with asyncio.timeout(READ_TIMEOUT), asyncio.TaskGroup() as group:
        info = group.create_task(hardware.info())
        attributes = group.create_task(hardware.ipu_attributes())
        shares = group.create_task(hardware.read_shares())
        links = group.create_task(hardware.links())
        cables = group.create_task(hardware.cables())
        pfc = group.create_task(hardware.pfc_classes())
    return Reading(
        info.result(),
        attributes.result(),
        shares.result(),
        links.result(),
        cables.result(),
        pfc.result(),
        time.monotonic() - start,
    )


def quantity(text: str, units: Mapping[str, int]) -> float | None:
    """Return the number in an attribute, in the unit of the metric; None for a text without unit ("N/A")."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[2] not in units:
        return None
    return float(f"{match[1]}e{units[match[2]]}")


class MachineMetrics(Collector):
    """Collector that reads the machine at each scrape, in the event loop of its agent.

    Call ``collect`` in another thread. Concurrent scrapes share one reading.
    """

    def __init__(self, hardware: Hardware, loop: asyncio.AbstractEventLoop, watchers: Callable[[], int]) -> None:
        """``watchers`` returns the number of controllers that watch the agent."""
        self._hardware = hardware
        self._loop = loop
        self._watchers = watchers
        self._version = metadata.version("openipu")
        self._started = time.time()
        self._reading: asyncio.Task[Reading | None] | None = None

    def collect(self) -> Iterator[Family]:
        """Return the metrics of the agent, and those of the machine when it responds."""
        reading = asyncio.run_coroutine_threadsafe(self._shared(), self._loop).result(READ_TIMEOUT * 2)
        samples = Samples(MACHINE, _OF_AGENT if reading is None else (*_OF_AGENT, *_OF_HARDWARE))
        samples.add("ipum_build_info", 1, self._version)
        samples.add("ipum_start_time_seconds", self._started)
        samples.add("ipum_controllers", self._watchers())
        samples.add("ipum_hardware_up", reading is not None)
        if reading is not None:
            _add_machine(samples, reading)
            _add_ipus(samples, reading)
            _add_wires(samples, reading)
        return samples.families()

    async def _shared(self) -> Reading | None:
        if self._reading is None or self._reading.done():
            self._reading = self._loop.create_task(self._read())
        return await asyncio.shield(self._reading)

    async def _read(self) -> Reading | None:
        try:
            return await read(self._hardware)
        except TimeoutError:
            reason = f"no response within {READ_TIMEOUT:g} s"
        except Exception as error:  # noqa: BLE001 - hardware errors must not hide the other metrics
            reason = "; ".join(str(each) for each in getattr(error, "exceptions", [error]))
        _log.warning("cannot read the machine for its metrics", reason=reason)
        return None


def _add_machine(samples: Samples, reading: Reading) -> None:
    facts = dict(reading.info.facts)
    identity = (facts.get(name, "") for name in ("Board serial number", "Part number", "Platform"))
    samples.add("ipum_hardware_answer_seconds", reading.seconds)
    samples.add("ipum_machine_info", 1, *identity)
    for component, version in sorted(reading.info.versions.items()):
        samples.add("ipum_component_info", 1, component, version)
    samples.add("ipum_partitions", len(reading.shares))


def _add_ipus(samples: Samples, reading: Reading) -> None:
    for number, attributes in sorted(reading.attributes.items()):
        ipu = str(number)
        identity = (attributes.get(name, "") for name in ("chip id", "board serial number", "firmware version"))
        samples.add("ipum_ipu_info", 1, ipu, *identity)
        for name, ready in _READY.items():
            if name in attributes:
                samples.add("ipum_ipu_ready", attributes[name] == ready, ipu)
                break
        if "partition id" in attributes:
            samples.add("ipum_ipu_in_use", bool(attributes["partition id"]), ipu)
        for name, (metric, labels) in _MEASURED.items():
            value = quantity(attributes.get(name, ""), _UNITS[metric])
            if value is not None:
                samples.add(metric, value, ipu, *labels)


def _add_wires(samples: Samples, reading: Reading) -> None:
    for link in reading.links:
        samples.add("ipum_link_up", link.up, link.link, _kind(link.link))
        samples.add("ipum_link_corrected_errors_total", link.corrected_errors, link.link, _kind(link.link))
    for cable in reading.cables:
        samples.add("ipum_port_cabled", bool(cable.serial), cable.kind.name.lower(), str(cable.port))
    for interface, classes in sorted(reading.pfc.items()):
        samples.add("ipum_rnic_pfc_classes", len(classes), interface)


def _kind(link: str) -> str:
    """Return the kind of a link from its name, see ``LinkState``."""
    if link.isdigit():
        return "ipu_link"
    return "gw_link" if link.startswith("gw") else "internal"
