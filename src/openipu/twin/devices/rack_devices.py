# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches and PDUs of a rack twin, in the process of its machines.

Their configuration is the key ``devices`` of the rack configuration; ``openipu.twin.launch.rack_config`` writes it.
Their folder holds their persistent state. It also holds the certificate of the switches and its authority, which
are new after each start.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import ssl
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openipu.twin.cables import power
from openipu.twin.cables.patch_cables import PatchCable, PatchCables
from openipu.twin.cables.switch_cabling import Neighbour
from openipu.twin.cables.wiring import Defect
from openipu.twin.devices.eos.ports import Ports
from openipu.twin.devices.logins import TLS
from openipu.twin.devices.rack_pdu import PduDevice
from openipu.twin.devices.rack_switch import SwitchDevice
from openipu.vipu.tls import issue, load

if TYPE_CHECKING:
    from openipu.twin.machine.machine import Machine

Device = SwitchDevice | PduDevice
_SWITCH_KEYS = ("name", "model", "host", "prefix", "port", "snmp_port")


class RackDevices:
    """All switches and PDUs of a rack, their patch cables and their power distribution.

    Args:
        config: key ``devices`` of the rack configuration.
        folder: folder of their persistent state.
        machines: the IPU-Machines by agent id; a machine without a live PDU outlet is stopped.

    Raises:
        KeyError, ValueError: for an invalid configuration.
    """

    def __init__(self, config: Mapping[str, Any], folder: Path, machines: Mapping[str, Machine]) -> None:
        self._folder = folder
        self._machines = machines
        self._agents: Mapping[str, str] = config["agents"]
        self._kinds = {feed["device"]: feed["kind"] for feed in config["feeds"]}
        self.stopped: set[str] = set()  # agent ids and devices that stay off when their power returns
        self._stopping = False
        self._power_changes: set[asyncio.Task[None]] = set()
        switches = config["switches"]
        self.switches = {
            switch["name"]: SwitchDevice(
                **{key: switch[key] for key in _SWITCH_KEYS},
                community=switch.get("community", ""),
                cabling=RackSwitchCabling(switch["name"], self),
                folder=folder / switch["name"],
            )
            for switch in switches
        }
        self.patch_cables = PatchCables(
            [self._patch_cable(switch["name"], plug) for switch in switches for plug in switch["plugs"]],
            {switch["name"]: Ports.for_model(switch["model"]).physical for switch in switches},
            self.powered,
        )
        self.pdus = {pdu["name"]: PduDevice(**pdu, folder=folder / pdu["name"], loads=self) for pdu in config["pdus"]}
        self.power = power.PowerDistribution(
            [power.Feed(feed["device"], feed["pdus"]) for feed in config["feeds"]],
            {name: pdu.outlets for name, pdu in self.pdus.items()},
            self._draw_of,
        )

    async def start(self) -> None:
        """Start all devices, or none after a failure. Raises OSError or TlsError with a one-line message."""
        self._stopping = False
        try:
            if self.switches:
                context = self._new_tls_context()
                for switch in self.switches.values():
                    switch.use_tls(context)
            for device in self._each():
                await device.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop all devices."""
        self._stopping = True  # machines keep running when their PDU stops here
        for task in self._power_changes:
            task.cancel()
        for device in self._each():
            await device.stop()

    @property
    def names(self) -> list[str]:
        """Names of all devices."""
        return [*self.switches, *self.pdus]

    def get(self, name: str) -> Device | None:
        """Return a device by its name, or None."""
        return self.switches.get(name) or self.pdus.get(name)

    def heal(self, names: Collection[str]) -> Iterator[Device]:
        """Remove the faults of these devices, and restore the patch cables of these devices and machines.

        Yields the devices, which may still be off.
        """
        owners = {agent: device for device, agent in self._agents.items()}
        self.patch_cables.repair([owners.get(name, name) for name in names])
        for name in names:
            device = self.get(name)
            if device is not None:
                device.heal()
                yield device

    def defects(self) -> Iterator[Defect]:
        """Yield the deviations of devices from the delivered state, causes first: PDUs before switches."""
        devices: list[Device] = [*self.pdus.values(), *self.switches.values()]
        for device in devices:
            yield from device.defects()

    # Relations between devices

    def powered(self, name: str) -> bool:
        """Return whether a device has power and is on."""
        machine = self._machines.get(self._agents.get(name, ""))
        if machine is not None:
            return machine.hardware.powered
        device = self.get(name)
        return self.power.has_power(name) and (device is None or device.running)

    def watts(self, pdu: str, outlet: int) -> float:
        """Return the W drawn from an outlet of a PDU."""
        return self.power.watts(pdu, outlet)

    def _draw_of(self, name: str) -> float:
        if not self.powered(name):
            return 0.0
        machine = self._machines.get(self._agents.get(name, ""))
        if machine is None:
            return power.STEADY.get(self._kinds.get(name, ""), 0.0)
        return power.MACHINE_IDLE + power.MACHINE_PER_BUSY_IPU * machine.hardware.busy_ipus

    def outlet_switched(self, pdu: str, outlet: int, on: bool) -> None:
        """Stop or start the device whose power an outlet of a PDU cut or restored."""
        name = self.power.switch(pdu, outlet, on)
        id = self._agents.get(name, name) if name else ""
        device = self._machines.get(id) or self.get(id)
        if device and not self._stopping and not (on and id in self.stopped):
            task = asyncio.get_running_loop().create_task(device.start() if on else device.stop())
            self._power_changes.add(task)
            task.add_done_callback(self._power_changes.discard)

    async def settle(self) -> None:
        """Wait for the stops and starts of devices whose power outlets of PDUs have switched."""
        await asyncio.gather(*self._power_changes, return_exceptions=True)

    def _each(self) -> Iterator[Device]:
        yield from self.switches.values()
        yield from self.pdus.values()

    def _patch_cable(self, switch: str, plug: Mapping[str, Any]) -> PatchCable:
        device, macs = plug["device"], plug["macs"]
        other = self.switches.get(device)
        neighbour = Neighbour(
            name=device if plug["lldp_port"] else "",
            chassis=other.switch.hardware.mac if other else (macs[0] if macs else _derived_mac(device)),
            port=plug["lldp_port"],
            macs=tuple((mac, plug["vlan"]) for mac in macs),
            description=f"Arista Networks EOS running on an {other.switch.model}" if other else "Linux",
            lacp=plug["lacp"],
        )
        return PatchCable(device, plug["connector"], f"{switch}:{plug['port']}", neighbour)

    def _new_tls_context(self) -> ssl.SSLContext:
        """Issue a new certificate for all switches, and return their TLS context."""
        folder = self._folder / TLS
        shutil.rmtree(folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        issue.create(folder, [name for each in self.switches.values() for name in (each.host, each.name)])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "server" / load.CA))
        context.load_cert_chain(folder / "server" / "server.crt", folder / "server" / "server.key")
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


class RackSwitchCabling:
    """Cabling of one switch of the rack."""

    def __init__(self, switch: str, devices: RackDevices) -> None:
        self._switch = switch
        self._devices = devices

    def neighbour(self, port: str) -> Neighbour | None:
        """Return the device at the other end of the cable in a port, or None."""
        return self._devices.patch_cables.neighbour(f"{self._switch}:{port}")


def _derived_mac(name: str) -> str:
    """Return a MAC address for a device without a configured one."""
    digits = "02" + hashlib.sha256(name.encode()).hexdigest()[:10]
    return ":".join(digits[index : index + 2] for index in range(0, 12, 2))
