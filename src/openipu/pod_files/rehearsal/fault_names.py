# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of machines, devices and ports in the faults of a rehearsal. No I/O."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from openipu.pod_files.rehearsal.inventory import unsupported
from openipu.shared.pod import model
from openipu.twin.cables.patch_cables import PatchCables
from openipu.twin.cables.wiring import Place, WiringError
from openipu.twin.devices.eos.ports import Ports
from openipu.twin.rack.fault_lines import INTERNAL, VERBS, FaultError, internal_link, parse, ports, remedy, targets


def parsed(lines: Sequence[str], pod: model.Pod) -> list[str]:
    """Return faults in their normal form. Raises FaultError for unknown verbs, machines, devices and ports.

    Whether a port has a cable depends on the state of the twin, and is not checked.
    """
    names = _Names(pod)
    found = []
    for line in lines:
        words = parse(line)
        for name in targets(words):
            names.check(name, line.strip())
        names.check_ports(words, line.strip())
        found.append(shlex.join(words))
    return found


class _Names:
    """Names of a POD that faults may have."""

    def __init__(self, pod: model.Pod) -> None:
        self._machines = {machine.agent for machine in pod.machines} | {machine.name for machine in pod.machines}
        switches = [switch for rack in pod.racks for switch in rack.switches]
        pdus = [pdu for rack in pod.racks for pdu in rack.pdus]
        self._devices = {switch.name for switch in switches} | {pdu.name for pdu in pdus}
        self._absent = {name: f"it does not support the model {product}" for name, product in unsupported(pod).items()}
        unmanaged = [switch.name for switch in switches if not switch.managed]
        unmanaged += [pdu.name for pdu in pdus if not pdu.managed]
        self._absent |= dict.fromkeys(unmanaged, "it is not managed")
        present = [switch for switch in switches if switch.name not in self._absent]
        self._ports = {switch.name: Ports.for_model(switch.model).physical for switch in present}

    def check(self, name: str, fault: str) -> None:
        """Raise FaultError unless the twin has a machine or device of this name."""
        known = self._machines | self._devices
        if name not in known:
            better = remedy(name, known, "Name a machine, switch or PDU of pod.yml.")
            raise FaultError(f"Cannot apply fault {fault!r}: the POD has no {name!r}. {better}")
        if reason := self._absent.get(name):
            raise FaultError(
                f"Cannot apply fault {fault!r}: the twin does not run {name!r}, because {reason}. Choose another one."
            )

    def check_ports(self, words: Sequence[str], fault: str) -> None:
        """Raise FaultError unless the machines or the switches have the ports of a fault."""
        links = INTERNAL in VERBS[words[0]].takes
        found = list(ports(words))
        for port in found:
            self._check_port(port, links, fault)
        of_switches = {port.partition(":")[0] in self._ports for port in found}
        if len(of_switches) > 1:
            raise FaultError(
                f"Cannot apply fault {fault!r}: a port is in a machine, the other in a switch. Change one."
            )
        if links and True in of_switches:
            raise FaultError(f"Cannot apply fault {fault!r}: the port is in a switch. Name a port of a machine.")

    def _check_port(self, port: str, links: bool, fault: str) -> None:
        """Raise FaultError unless the machine or switch has this port. ``links`` allows links inside a machine."""
        name = port.partition(":")[0]
        try:
            if name in self._ports:
                PatchCables((), self._ports, lambda _device: True).check_exists(port)
            elif name in self._machines:
                _ = (links and internal_link(port)) or Place.parse(port)
            else:
                raise FaultError(f"Cannot apply fault {fault!r}: {name!r} has no such ports. Name a machine or switch.")
        except WiringError as error:
            raise FaultError(str(error)) from None
