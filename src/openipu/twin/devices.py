# SPDX-License-Identifier: GPL-3.0-or-later
"""The switches and PDUs of a rack twin, in the process of its machines.

They stand in the configuration of ``openipu.twin.rack`` under ``devices``, as ``openipu.twin.racked`` makes it.
Their folder holds what they keep over a restart, and the certificate of the switches with its authority,
which is another one after each start.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import ssl
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openipu.twin import power
from openipu.twin.eos.ports import Ports
from openipu.twin.eos.surroundings import Neighbour
from openipu.twin.logins import TLS
from openipu.twin.patching import Patch, Patching
from openipu.twin.pdu_device import PduDevice
from openipu.twin.switch_device import SwitchDevice
from openipu.twin.wiring import Wrong
from openipu.vipu import tls

if TYPE_CHECKING:
    from openipu.twin.rack import Machine

Device = SwitchDevice | PduDevice


class Devices:
    """All of them.

    Args:
        config: as ``racked`` makes it.
        folder: what they keep.
        machines: the IPU-Machines by the id of their agents, which are dark when no PDU feeds them.

    Raises:
        KeyError, ValueError: for a configuration that makes no devices.
    """

    def __init__(self, config: Mapping[str, Any], folder: Path, machines: Mapping[str, Machine]) -> None:
        self._folder = folder
        self._machines = machines
        self._agents: Mapping[str, str] = config["agents"]
        self._kinds = {feed["device"]: feed["kind"] for feed in config["feeds"]}
        self._over = False
        self._deeds: set[asyncio.Task[None]] = set()
        switches = config["switches"]
        self.switches = {
            switch["name"]: SwitchDevice(
                **{key: switch[key] for key in ("name", "model", "host", "prefix", "port")},
                surroundings=Panel(switch["name"], self),
                folder=folder / switch["name"],
            )
            for switch in switches
        }
        self.patching = Patching(
            [self._patch(switch["name"], plug) for switch in switches for plug in switch["plugs"]],
            {switch["name"]: Ports.of_model(switch["model"]).physical for switch in switches},
            self.lives,
        )
        self.pdus = {pdu["name"]: PduDevice(**pdu, folder=folder / pdu["name"], plugs=self) for pdu in config["pdus"]}
        self.power = power.Power(
            [power.Feed(feed["device"], feed["pdus"]) for feed in config["feeds"]],
            {name: pdu.outlets for name, pdu in self.pdus.items()},
            self._draw,
        )

    async def start(self) -> None:
        """Switch all of them on. Raises OSError or TlsError with a sentence, and then none is on."""
        self._over = False
        try:
            if self.switches:
                context = self._certificates()
                for switch in self.switches.values():
                    switch.secure(context)
            for device in self._all():
                await device.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Switch all of them off."""
        self._over = True  # machines are not stopped because their PDU is
        for deed in self._deeds:
            deed.cancel()
        for device in self._all():
            await device.stop()

    @property
    def names(self) -> list[str]:
        """Of all of them."""
        return [*self.switches, *self.pdus]

    def get(self, name: str) -> Device | None:
        """A device by its name."""
        return self.switches.get(name) or self.pdus.get(name)

    def heal(self, names: Collection[str]) -> Iterator[Device]:
        """Make all good again of these devices and of the cables of theirs and of machines named here.

        Gives the devices themselves, which may have to be switched on.
        """
        owners = {agent: device for device, agent in self._agents.items()}
        self.patching.repair([owners.get(name, name) for name in names])
        for name in names:
            device = self.get(name)
            if device is not None:
                device.heal()
                yield device

    def wrong(self) -> Iterator[Wrong]:
        """What is not as it was delivered."""
        yield from self.patching.wrong()
        for device in self._all():
            yield from device.wrong()

    # What devices are to each other

    def lives(self, name: str) -> bool:
        """Whether a device has power and is on."""
        machine = self._machines.get(self._agents.get(name, ""))
        if machine is not None:
            return machine.hardware.powered
        device = self.get(name)
        return self.power.fed(name) and (device is None or device.running)

    def watts(self, pdu: str, outlet: int) -> float:
        """What is taken from an outlet of a PDU."""
        return self.power.watts(pdu, outlet)

    def _draw(self, name: str) -> float:
        if not self.lives(name):
            return 0.0
        machine = self._machines.get(self._agents.get(name, ""))
        if machine is None:
            return power.STEADY.get(self._kinds.get(name, ""), 0.0)
        return power.MACHINE_IDLE + power.MACHINE_PER_BUSY_IPU * machine.hardware.busy_ipus

    def switched(self, pdu: str, outlet: int, on: bool) -> None:
        """An outlet of a PDU was switched: who is dark now is stopped, and who is fed again starts."""
        name = self.power.switch(pdu, outlet, on)
        device = self._machines.get(self._agents.get(name, "")) or self.get(name) if name else None
        if device and not self._over:
            deed = asyncio.get_running_loop().create_task(device.start() if on else device.stop())
            self._deeds.add(deed)
            deed.add_done_callback(self._deeds.discard)

    def _all(self) -> Iterator[Device]:
        yield from self.switches.values()
        yield from self.pdus.values()

    def _patch(self, switch: str, plug: Mapping[str, Any]) -> Patch:
        device, macs = plug["device"], plug["macs"]
        other = self.switches.get(device)
        neighbour = Neighbour(
            name=device if plug["lldp_port"] else "",
            chassis=other.switch.hardware.mac if other else (macs[0] if macs else _made_up_mac(device)),
            port=plug["lldp_port"],
            macs=tuple((mac, plug["vlan"]) for mac in macs),
            description=f"Arista Networks EOS running on an {other.switch.model}" if other else "Linux",
            lacp=plug["lacp"],
        )
        return Patch(device, plug["connector"], f"{switch}:{plug['port']}", neighbour)

    def _certificates(self) -> ssl.SSLContext:
        """The certificate of all switches, new."""
        folder = self._folder / TLS
        shutil.rmtree(folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tls.create(folder, [name for each in self.switches.values() for name in (each.host, each.name)])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "server" / tls.CA))
        context.load_cert_chain(folder / "server" / "server.crt", folder / "server" / "server.key")
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


class Panel:
    """The ports of one switch: what it meets in them."""

    def __init__(self, switch: str, devices: Devices) -> None:
        """See the class."""
        self._switch = switch
        self._devices = devices

    def neighbour(self, port: str) -> Neighbour | None:
        """What is in a port."""
        return self._devices.patching.neighbour(f"{self._switch}:{port}")


def _made_up_mac(name: str) -> str:
    """A MAC address for a device that was given none."""
    digits = "02" + hashlib.sha256(name.encode()).hexdigest()[:10]
    return ":".join(digits[index : index + 2] for index in range(0, 12, 2))
