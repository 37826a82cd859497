# SPDX-License-Identifier: GPL-3.0-or-later
"""Fault injection for a rack twin, by the lines of ``fault_lines``.

A fault changes the state of a cable, a machine or a device, and nothing else. Diagnosis of the effects is up to the
software under test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from openipu.shared.pod.topology import CableKind
from openipu.shared.vipu.cluster_test.cable_names import link_name
from openipu.twin.cables.wiring import Defect, Place, Wiring, WiringError
from openipu.twin.machine.hardware import HEALTHY_PFC, TwinHardware
from openipu.twin.machine.reports import VERSIONS
from openipu.twin.rack.fault_lines import FaultError, internal_link, parse, remedy, targets
from openipu.vipu.domain.model import IPUS_PER_MACHINE

if TYPE_CHECKING:
    from openipu.twin.devices.rack_devices import Device, RackDevices
    from openipu.twin.devices.rack_switch import SwitchDevice
    from openipu.twin.machine.machine import Machine

# Reason for which "configure" fails: a clause, as HardwareError requires.
REJECTION = "the IPUs do not come up (fault of the twin)"
IPU_FAILURE = "uncorrectable memory error (fault of the twin)"
SLOWEST = 3600.0  # seconds
HOTTEST = 200.0  # degrees Celsius
PFC_CLASSES = frozenset(map(str, range(16)))  # as many as the controller accepts


class RackFaults:
    """Faults of a running rack. All methods run in the event loop of the rack."""

    def __init__(self, machines: Mapping[str, Machine], wiring: Wiring) -> None:
        self._machines = machines
        self._wiring = wiring
        self.devices: RackDevices | None = None
        self._names: Mapping[str, str] = {}
        self._unmanaged: frozenset[str] = frozenset()
        self._verbs: dict[str, Callable[..., Awaitable[None] | None]] = {
            "unplug": lambda port: self._cable("unplug", port),
            "plug": lambda port: self._cable("plug", port),
            "move": lambda port, to: self._cable("move", port, to),
            "swap": lambda port, other: self._cable("swap", port, other),
            "break": self._break,
            "errors": self._errors,
            "version": self._version,
            "versions": self._versions,
            "pfc": self._pfc,
            "slow": self._slow,
            "hot": self._hot,
            "reject": self._reject,
            "hang": lambda agent: self._running_hardware(agent).hang(),
            "ipu": self._ipu,
            "login": lambda device: self._device(device).inject("login"),
            "sessions": lambda switch: self._switch(switch).inject("sessions"),
            "drop": self._drop,
            "stop": self.stop,
            "start": self.start,
            "heal": self._heal,
        }

    async def apply(self, line: str) -> None:
        """Apply one fault. Raises FaultError, with nothing changed, and OSError for a failed start."""
        verb, *words = parsed = parse(line)
        for name in targets(parsed):
            self.check_name(name)
        try:
            pending = self._verbs[verb](*map(self._translated, words))
        except WiringError as error:
            raise FaultError(str(error)) from None
        if pending is not None:
            await pending

    def use_names(self, names: Mapping[str, str], unmanaged: Collection[str] = ()) -> None:
        """Accept other names of machines: ``names`` has their agent ids. ``unmanaged`` devices are not in the rack."""
        self._names = {name: id for name, id in names.items() if name not in self._machines}
        self._unmanaged = frozenset(unmanaged)

    def check_name(self, name: str) -> None:
        """Raise FaultError unless the rack has a machine or device of this name."""
        devices = self.devices.names if self.devices else ()
        known = {*self._machines, *self._names, *devices}
        if name in known:
            return
        if name in self._unmanaged:
            raise FaultError(
                f"Cannot apply a fault to {name!r}: it is not managed, so the twin does not run it. Choose another one."
            )
        raise FaultError(
            f"Cannot find {name!r}: this rack has no such machine, switch or PDU. "
            f"{remedy(name, known, 'Check the name.')}"
        )

    def agent(self, name: str) -> str:
        """Return the agent id of a machine by its name; an unknown name is unchanged."""
        return self._names.get(name, name)

    def _translated(self, word: str) -> str:
        """Return an argument with the agent id in the place of another name of a machine, also before a port."""
        name, colon, port = word.partition(":")
        return f"{self.agent(name)}{colon}{port}"

    def defects(self) -> Iterator[Defect]:
        """Yield every deviation from the delivered state, causes before their effects: a PDU before its machines."""
        if self.devices:
            yield from self.devices.defects()
        yield from self._wiring.defects()
        for machine in self._machines.values():
            yield from _machine_defects(machine)
        if self.devices:
            yield from self.devices.patch_cables.defects()

    def machine(self, id: str) -> Machine:
        """Return a machine of this rack. Raises FaultError."""
        if id not in self._machines:
            raise FaultError(f"Cannot find machine {id!r}: it is {self._kind(id)}. Name a machine.")
        return self._machines[id]

    def _running_hardware(self, id: str) -> TwinHardware:
        machine = self.machine(id)
        if not machine.server.running:
            raise FaultError(f"Cannot use machine {id!r}: it is stopped. Start it first.")
        return machine.hardware

    def _cable(self, change: str, *ports: str) -> None:
        """Change a cable between machines, or a patch cable of a switch."""
        if self.devices and ports[0].partition(":")[0] in self.devices.switches:
            getattr(self.devices.patch_cables, change)(*ports)
        else:
            getattr(self._wiring, change)(*map(self._place, ports))

    def _place(self, text: str) -> Place:
        """Return the port of a machine. Raises FaultError, or WiringError for an invalid port."""
        self.machine(text.partition(":")[0])
        return self._wiring.place(text)

    def _kind(self, name: str) -> str:
        if name in self._machines:
            return "a machine"
        device = self._find_device(name)
        return f"a {device.kind}" if device else "not in this rack"

    def _find_device(self, name: str) -> Device | None:
        return self.devices.get(name) if self.devices else None

    def _device(self, name: str) -> Device:
        device = self._find_device(name)
        if device is None:
            raise FaultError(f"Cannot find switch or PDU {name!r}: it is {self._kind(name)}. Name a switch or PDU.")
        return device

    def _switch(self, name: str) -> SwitchDevice:
        switch = self.devices.switches.get(name) if self.devices else None
        if switch is None:
            raise FaultError(f"Cannot find switch {name!r}: it is {self._kind(name)}. Name a switch.")
        return switch

    def _drop(self, switch: str, when: str) -> None:
        if when not in ("before", "after"):
            raise FaultError(f"Cannot apply 'drop {switch} {when}': {when!r} is neither before nor after. Write one.")
        self._switch(switch).drop(when)

    def _break(self, text: str) -> None:
        internal = self._internal_link(text)
        if internal:
            hardware, link = internal
            hardware.broken_links.add(link)
        else:
            self._wiring.degrade(self._place(text), dead=True)

    def _errors(self, text: str, count: str) -> None:
        if not (count.isascii() and count.isdigit() and len(count) < 10):
            raise FaultError(
                f"Cannot apply 'errors {text} {count}': the count is invalid. Write a number from 0 to 999999999."
            )
        internal = self._internal_link(text)
        if internal:
            hardware, link = internal
            hardware.noisy_links[link] = int(count)
            hardware.run_link_traffic(link)
            return
        place = self._place(text)
        if place.kind is not CableKind.IPU_LINK:
            raise FaultError(
                f"Cannot apply 'errors {text} {count}': only IPU-Links run traffic. Name an IPU-Link port, like ag03:5."
            )
        self._wiring.degrade(place, corrected_errors=int(count))
        cable = self._wiring.at(place)
        for end in cable.ends if cable else ():
            if end is not None:
                self.machine(end.agent).hardware.run_link_traffic(str(end.port))

    def _internal_link(self, text: str) -> tuple[TwinHardware, str] | None:
        """Return the machine and the name of an internal link; None for the text of a port."""
        found = internal_link(text)
        return (self.machine(found[0]).hardware, found[1]) if found else None

    def _version(self, agent: str, component: str, version: str) -> None:
        hardware = self.machine(agent).hardware
        if component not in hardware.versions:
            known = ", ".join(hardware.versions)
            raise FaultError(
                f"Cannot find component {component!r}: machine {agent!r} does not have it. Choose from {known}."
            )
        hardware.versions[component] = version

    def _versions(self, agent: str, *components: str) -> None:
        pairs = [component.partition("=") for component in components]
        for name, _, version in pairs:
            if not name or not version:
                raise FaultError(
                    f"Cannot set versions of {agent!r}: a component has no version. "
                    "Write each as COMPONENT=VERSION, like Virm=1.18.0."
                )
        self.machine(agent).hardware.versions = {name: version for name, _, version in pairs}

    def _pfc(self, agent: str, interface: str, classes: str) -> None:
        numbers = [] if classes == "none" else classes.split(",")
        if len(set(numbers)) < len(numbers) or not PFC_CLASSES.issuperset(numbers):
            raise FaultError(
                f"Cannot apply 'pfc {agent} {interface} {classes}': the classes are invalid. "
                f"Write different classes from 0 to {len(PFC_CLASSES) - 1}, like 0,2, or none."
            )
        self.machine(agent).hardware.pfc[interface] = tuple(map(int, numbers))

    def _slow(self, agent: str, seconds: str) -> None:
        value = _number(seconds, SLOWEST)
        if value is None:
            raise FaultError(
                f"Cannot apply 'slow {agent} {seconds}': the time is invalid. Write seconds from 0 to {SLOWEST:.0f}."
            )
        if device := self._find_device(agent):
            device.slow(value)
        else:
            self.machine(agent).hardware.response_delay = value

    def _hot(self, agent: str, degrees: str) -> None:
        value = _number(degrees, HOTTEST)
        if value is None:
            raise FaultError(
                f"Cannot apply 'hot {agent} {degrees}': the temperature is invalid. "
                f"Write degrees Celsius from 0 to {HOTTEST:.0f}."
            )
        self.machine(agent).hardware.temperature_offset = value

    def _reject(self, agent: str) -> None:
        if device := self._find_device(agent):
            device.inject("reject")
        else:
            self._running_hardware(agent).rejection = REJECTION

    def _ipu(self, agent: str, ipu: str) -> None:
        if ipu not in map(str, range(IPUS_PER_MACHINE)):
            raise FaultError(
                f"Cannot find IPU {ipu!r}: machine {agent!r} does not have it. Choose 0 to {IPUS_PER_MACHINE - 1}."
            )
        self._running_hardware(agent).fail_ipu(int(ipu), IPU_FAILURE)

    async def stop(self, *names: str) -> None:
        """Stop machines and devices until ``start`` or "heal", even when their PDU starts. Raises FaultError."""
        selected = self._all(names)
        if self.devices:
            self.devices.stopped.update(names)
            await self.devices.settle()  # a PDU may still start them
        await asyncio.gather(*(each.stop() for each in selected))

    async def start(self, *names: str) -> None:
        """Start machines and devices. Raises FaultError, and OSError for a failed start."""
        selected = self._all(names)
        if self.devices:
            self.devices.stopped.difference_update(names)
            await self.devices.settle()  # a PDU may still stop them
        for each in selected:
            await each.start()

    def _all(self, names: Collection[str]) -> list[Machine | Device]:
        return [self._find_device(name) or self.machine(name) for name in names]

    async def _heal(self, *names: str) -> None:
        self._all(names)
        if self.devices:
            self.devices.stopped.difference_update(names or list(self.devices.stopped))
            await self.devices.settle()
        machines = [self.machine(id) for id in names or self._machines if not self._find_device(id)]
        self._wiring.repair({machine.id for machine in machines})
        for machine in machines:
            machine.hardware.restore()
            await machine.start()
        if self.devices:
            for device in self.devices.heal(names or (*self._machines, *self.devices.names)):
                await device.start()


def _number(text: str, most: float) -> float | None:
    """Return the number of a text, from 0 to ``most``; None for other texts."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= most else None


def _machine_defects(machine: Machine) -> Iterator[Defect]:
    hardware = machine.hardware

    def defect(fault: str, description: str, part: str = "", found: str = "", expected: str = "") -> Defect:
        where = f"{machine.id}:{part}" if part else machine.id
        return Defect(fault, where, f"{machine.id}: {description}.", found, expected)

    if not machine.server.running:
        yield defect("stop", "has no power")
    elif hardware.hanging:
        yield defect("hang", "does not respond")
    if hardware.rejection:
        yield defect("reject", "rejects the bring-up of IPUs")
    if hardware.response_delay:
        seconds = f"{hardware.response_delay:g}"
        yield defect("slow", f"responds {seconds} s late", found=seconds, expected="0")
    if hardware.temperature_offset:
        degrees = f"{hardware.temperature_offset:g}"
        yield defect("hot", f"is {degrees} °C warmer than normal", found=degrees, expected="0")
    for link in sorted(hardware.broken_links):
        name = link_name(machine.id, link)
        yield Defect("break", name, f"IPU-Link {name}: broken.")
    for link, errors in sorted(hardware.noisy_links.items()):
        if errors:
            name = link_name(machine.id, link)
            description = f"IPU-Link {name}: {errors} corrected errors in every run of traffic."
            yield Defect("errors", name, description, str(errors), "0")
    for component in {**VERSIONS, **hardware.versions}:
        found, expected = hardware.versions.get(component, ""), VERSIONS.get(component, "")
        if found != expected:
            yield defect("version", _mismatch(component, found, expected), component, found, expected)
    for interface in sorted({**HEALTHY_PFC, **hardware.pfc}):
        classes, healthy = hardware.pfc.get(interface), HEALTHY_PFC.get(interface)
        if classes != healthy:
            description = f"the PFC classes of {interface} are {_classes(classes)}"
            yield defect("pfc", description, interface, _classes(classes), _classes(healthy))
    for ipu in sorted(hardware.failed_ipus):
        yield defect("ipu", f"IPU {ipu} has failed", f"ipu{ipu}")


def _mismatch(component: str, found: str, expected: str) -> str:
    if not found:
        return f"{component} {expected} is missing"
    return f"{component} has the version {found}" + (f" instead of {expected}" if expected else "")


def _classes(classes: Collection[int] | None) -> str:
    return str(list(classes)) if classes is not None else ""
