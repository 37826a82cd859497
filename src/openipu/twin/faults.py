# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be made wrong with a rack twin, in one grammar for the command line, for files and for programs.

A fault is a line: a verb and what it is done to, ``unplug ag03:7`` or ``version ag08 Virm 1.5.1``. It
changes the state of a wire or a machine; whoever looks at the rack has to find out what follows.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import INTERNAL_LINKS, CableKind

from openipu.twin.hardware import HEALTHY_PFC, VERSIONS, TwinHardware
from openipu.twin.wiring import Wiring, WiringError, Wrong
from openipu.vipu.model import IPUS_PER_MACHINE

if TYPE_CHECKING:
    from openipu.twin.devices import Device, Devices
    from openipu.twin.rack import Machine
    from openipu.twin.switch_device import SwitchDevice

# What "configure" refuses with: a clause, as hardware tells it.
REFUSAL = "the IPUs do not come up (fault of the twin)"
IPU_FAILURE = "uncorrectable memory error (fault of the twin)"
SLOWEST = 3600.0  # seconds
HOTTEST = 200.0  # degrees Celsius
PFC_CLASSES = frozenset("01234567")


class FaultError(ValueError):
    """A fault that makes no sense, or cannot be; one sentence."""


@dataclass(frozen=True)
class Verb:
    """How a fault is written, and what it does."""

    takes: str  # names of its words; one in brackets may be left out, and one with an ellipsis comes several times
    does: str

    def fits(self, count: int) -> bool:
        """Whether it can have so many words."""
        words = self.takes.split()
        needed = sum(not word.startswith("[") for word in words)
        return count >= needed and ("…" in self.takes or count <= len(words))


VERBS = {
    "unplug": Verb("PORT", "pull the cable out of a port"),
    "plug": Verb("PORT", "put the loose end that belongs there back in"),
    "move": Verb("PORT TO", "move the end of a cable to a free port"),
    "swap": Verb("PORT PORT", "exchange the cables in two ports"),
    "break": Verb("PORT|AGENT:internalN", "break the cable in a port, or a link inside of a machine"),
    "errors": Verb(
        "PORT|AGENT:internalN COUNT", "let an IPU-Link correct so many errors, now and in every run of traffic"
    ),
    "version": Verb("AGENT COMPONENT VERSION", "give a component another version"),
    "versions": Verb("AGENT COMPONENT=VERSION…", "give a machine these components, and no others"),
    "pfc": Verb("AGENT INTERFACE CLASSES", "set the PFC classes of an interface: 0,2 or none"),
    "slow": Verb("AGENT|DEVICE SECONDS", "let every answer take so much longer"),
    "hot": Verb("AGENT DEGREES", "let a machine be so much warmer than it should be"),
    "refuse": Verb("AGENT|DEVICE", "let a machine refuse to bring IPUs up, a switch or PDU refuse to answer"),
    "hang": Verb("AGENT", "let a machine answer nothing, and close nothing"),
    "ipu": Verb("AGENT IPU", "let an IPU fail now, under whatever partition holds it"),
    "login": Verb("DEVICE", "let a switch or PDU know none of its users"),
    "sessions": Verb("SWITCH", "let a switch have no room for another configuration session"),
    "drop": Verb("SWITCH before|after", "let a switch break the connection in the next commit, before or after it"),
    "stop": Verb("AGENT|DEVICE…", "let them lose their power"),
    "start": Verb("AGENT|DEVICE…", "start those that were stopped"),
    "heal": Verb("[AGENT|DEVICE…]", "make everything good again, of all or of these"),
}


def parse(line: str) -> list[str]:
    """The words of a fault: a known verb and as many others as it takes. Raises FaultError."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        raise FaultError(f"Cannot read {line!r}: a quotation mark is missing.") from None
    if not words:
        raise FaultError(f"There is no fault in {line!r}.")
    verb = VERBS.get(words[0])
    if verb is None:
        raise FaultError(f"There is no fault {words[0]!r}: choose from {', '.join(VERBS)}.")
    if not verb.fits(len(words) - 1):
        raise FaultError(f"{line.strip()!r}: write {words[0]} {verb.takes}.")
    return words


class Faults:
    """The machines and cables of a running rack, to be spoiled. In its event loop."""

    def __init__(self, machines: Mapping[str, Machine], wiring: Wiring) -> None:
        """See the class."""
        self._machines = machines
        self._wiring = wiring
        self.devices: Devices | None = None
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
            "refuse": self._refuse,
            "hang": lambda agent: self._alive(agent).hang(),
            "ipu": self._ipu,
            "login": lambda device: self._device(device).fault("login"),
            "sessions": lambda switch: self._switch(switch).fault("sessions"),
            "drop": self._drop,
            "stop": self._stop,
            "start": self._start,
            "heal": self._heal,
        }

    async def do(self, line: str) -> None:
        """Carry out one fault. Raises FaultError, and then nothing has changed; and OSError from a start."""
        verb, *words = parse(line)
        try:
            done = self._verbs[verb](*words)
        except WiringError as error:
            raise FaultError(str(error)) from None
        if done is not None:
            await done

    def wrong(self) -> Iterator[Wrong]:
        """Everything that is not as it was delivered."""
        yield from self._wiring.wrong()
        for machine in self._machines.values():
            yield from _ailments(machine)
        if self.devices:
            yield from self.devices.wrong()

    def machine(self, id: str) -> Machine:
        """A machine that is there. Raises FaultError."""
        if id not in self._machines:
            raise FaultError(f"There is no machine {id!r} in this rack.")
        return self._machines[id]

    def _alive(self, id: str) -> TwinHardware:
        machine = self.machine(id)
        if not machine.server.running:
            raise FaultError(f"Machine {id!r} is stopped; start it first.")
        return machine.hardware

    def _cable(self, deed: str, *ports: str) -> None:
        """What hands do to a cable between machines, or to one into a switch."""
        if self.devices and ports[0].partition(":")[0] in self.devices.switches:
            getattr(self.devices.patching, deed)(*ports)
        else:
            getattr(self._wiring, deed)(*map(self._wiring.place, ports))

    def _found(self, name: str) -> Device | None:
        return self.devices.get(name) if self.devices else None

    def _device(self, name: str) -> Device:
        device = self._found(name)
        if device is None:
            raise FaultError(f"There is no switch or PDU {name!r} in this rack.")
        return device

    def _switch(self, name: str) -> SwitchDevice:
        switch = self.devices.switches.get(name) if self.devices else None
        if switch is None:
            raise FaultError(f"There is no switch {name!r} in this rack.")
        return switch

    def _drop(self, switch: str, when: str) -> None:
        if when not in ("before", "after"):
            raise FaultError(f"drop {switch} {when}: write before or after.")
        self._switch(switch).drop(when)

    def _break(self, text: str) -> None:
        inside = self._inside(text)
        if inside:
            hardware, link = inside
            hardware.broken_links.add(link)
        else:
            self._wiring.degrade(self._wiring.place(text), dead=True)

    def _errors(self, text: str, count: str) -> None:
        if not (count.isascii() and count.isdigit() and len(count) < 10):
            raise FaultError(f"errors {text} {count}: the number of corrected errors is 0 to 999999999.")
        inside = self._inside(text)
        if inside:
            hardware, link = inside
            hardware.noisy_links[link] = int(count)
            hardware.use(link)
            return
        place = self._wiring.place(text)
        if place.kind is not CableKind.IPU_LINK:
            raise FaultError(
                f"errors {text} {count}: traffic runs over IPU-Links only; name an IPU-Link port, like ag03:5."
            )
        self._wiring.degrade(place, corrected_errors=int(count))
        cable = self._wiring.at(place)
        for end in cable.ends if cable else ():
            if end is not None:
                self.machine(end.agent).hardware.use(str(end.port))

    def _inside(self, text: str) -> tuple[TwinHardware, str] | None:
        """The machine and the name of a link inside of it; None for what is written like a port."""
        agent, _, link = text.rpartition(":")
        if not link.startswith("internal"):
            return None
        hardware = self.machine(agent).hardware
        if link not in hardware.internal_links:
            raise FaultError(f"{text!r}: the links inside of a machine are internal0 to internal{INTERNAL_LINKS - 1}.")
        return hardware, link

    def _version(self, agent: str, component: str, version: str) -> None:
        hardware = self.machine(agent).hardware
        if component not in hardware.versions:
            known = ", ".join(hardware.versions)
            raise FaultError(f"Machine {agent!r} has no component {component!r}: choose from {known}.")
        hardware.versions[component] = version

    def _versions(self, agent: str, *components: str) -> None:
        pairs = [component.partition("=") for component in components]
        for name, _, version in pairs:
            if not name or not version:
                raise FaultError(f"versions {agent}: write each component as COMPONENT=VERSION, like Virm=1.18.0.")
        self.machine(agent).hardware.versions = {name: version for name, _, version in pairs}

    def _pfc(self, agent: str, interface: str, classes: str) -> None:
        numbers = [] if classes == "none" else classes.split(",")
        if not all(number in PFC_CLASSES for number in numbers):
            raise FaultError(f"pfc {agent} {interface} {classes}: classes are 0 to 7, written like 0,2, or none.")
        hardware = self.machine(agent).hardware
        if interface not in hardware.pfc:
            known = ", ".join(hardware.pfc)
            raise FaultError(f"Machine {agent!r} has no RNIC interface {interface!r}: choose from {known}.")
        hardware.pfc[interface] = tuple(map(int, numbers))

    def _slow(self, agent: str, seconds: str) -> None:
        value = _number(seconds, SLOWEST)
        if value is None:
            raise FaultError(f"slow {agent} {seconds}: seconds are a number from 0 to {SLOWEST:.0f}.")
        if device := self._found(agent):
            device.slow(value)
        else:
            self.machine(agent).hardware.slowness = value

    def _hot(self, agent: str, degrees: str) -> None:
        value = _number(degrees, HOTTEST)
        if value is None:
            raise FaultError(f"hot {agent} {degrees}: degrees Celsius are a number from 0 to {HOTTEST:.0f}.")
        self.machine(agent).hardware.warmth = value

    def _refuse(self, agent: str) -> None:
        if device := self._found(agent):
            device.fault("refuse")
        else:
            self._alive(agent).refusal = REFUSAL

    def _ipu(self, agent: str, ipu: str) -> None:
        if ipu not in map(str, range(IPUS_PER_MACHINE)):
            raise FaultError(f"An IPU-Machine has IPUs 0 to {IPUS_PER_MACHINE - 1}, and no IPU {ipu}.")
        self._alive(agent).fail_ipu(int(ipu), IPU_FAILURE)

    async def _stop(self, *names: str) -> None:
        await asyncio.gather(*(each.stop() for each in self._all(names)))

    async def _start(self, *names: str) -> None:
        for each in self._all(names):
            await each.start()

    def _all(self, names: Collection[str]) -> list[Machine | Device]:
        return [self._found(name) or self.machine(name) for name in names]

    async def _heal(self, *names: str) -> None:
        self._all(names)
        machines = [self.machine(id) for id in names or self._machines if not self._found(id)]
        self._wiring.repair({machine.id for machine in machines})
        for machine in machines:
            machine.hardware.renew()
            await machine.start()
        if self.devices:
            for device in self.devices.heal(names or (*self._machines, *self.devices.names)):
                await device.start()


def _number(text: str, most: float) -> float | None:
    """A number from 0 to ``most``; None for what is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= most else None


def _ailments(machine: Machine) -> Iterator[Wrong]:
    hardware = machine.hardware

    def wrong(fault: str, told: str, part: str = "", found: str = "", expected: str = "") -> Wrong:
        where = f"{machine.id}:{part}" if part else machine.id
        return Wrong(fault, where, f"{machine.id}: {told}.", found, expected)

    if not machine.server.running:
        yield wrong("stop", "has no power")
    elif hardware.hanging:
        yield wrong("hang", "hangs")
    if hardware.refusal:
        yield wrong("refuse", "refuses to bring IPUs up")
    if hardware.slowness:
        seconds = f"{hardware.slowness:g}"
        yield wrong("slow", f"answers {seconds} seconds late", found=seconds, expected="0")
    if hardware.warmth:
        degrees = f"{hardware.warmth:g}"
        yield wrong("hot", f"is {degrees} °C warmer than it should be", found=degrees, expected="0")
    for link in sorted(hardware.broken_links):
        yield wrong("break", f"the link {link} is broken", link)
    for link, errors in sorted(hardware.noisy_links.items()):
        if errors:
            yield wrong("errors", f"the link {link} corrects {errors} errors", link, str(errors), "0")
    for component in {**VERSIONS, **hardware.versions}:
        found, expected = hardware.versions.get(component, ""), VERSIONS.get(component, "")
        if found != expected:
            yield wrong("version", _mismatch(component, found, expected), component, found, expected)
    for interface in sorted({**HEALTHY_PFC, **hardware.pfc}):
        classes, healthy = hardware.pfc.get(interface), HEALTHY_PFC.get(interface)
        if classes != healthy:
            told = f"the PFC classes of {interface} are {_classes(classes)}"
            yield wrong("pfc", told, interface, _classes(classes), _classes(healthy))
    for ipu in sorted(hardware.failed_ipus):
        yield wrong("ipu", f"IPU {ipu} has failed", f"ipu{ipu}")


def _mismatch(component: str, found: str, expected: str) -> str:
    if not found:
        return f"{component} {expected} is missing"
    return f"{component} has the version {found}" + (f" instead of {expected}" if expected else "")


def _classes(classes: Collection[int] | None) -> str:
    return str(list(classes)) if classes is not None else ""
