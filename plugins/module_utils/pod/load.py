# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loading of pod.yml and machines.csv into a checked ``model.Pod``.

``load`` is the entry point of this package. ``spec`` declares the keys and columns, ``source`` parses the files, and
``model`` has the result. Errors are ``PodError`` with file and line, if known. Modules such as ``switch_config``,
``openstack_networks`` and ``firewall`` derive configuration from the model; they are pure.
"""

from __future__ import annotations

from . import cabling, controller, kubernetes_nodes, model, openstack_settings, spec, teams
from .addresses import Plan, UniqueValues
from .clusters_and_partitions import ObjectLists
from .mistakes import Mistakes, PodError
from .source import Block, read_csv, read_yaml, relative_to, unknown

__all__ = ["PodError", "load"]


def load(pod_yml: str, machines_csv: str | None = None) -> model.Pod:
    """Read and check a POD.

    ``machines_csv`` replaces the file of the option ``machines`` in pod.yml. Raises PodError with all mistakes.
    Cables, objects of the controller and other keys that refer to devices are checked when the networks and the
    devices have none.
    """
    top = read_yaml(pod_yml)
    top = spec.POD.check(top)
    path = machines_csv or relative_to(pod_yml, top["machines"])
    return _Loader(top, path).pod()


class _Loader:
    """Loader of one POD. Its plan records all names and addresses to find duplicates."""

    def __init__(self, top: Block, machines_file: str) -> None:
        self.top = top
        self.machines_file = machines_file
        self.plan = Plan(top)
        self.agents = UniqueValues("agent id")
        self.serials = UniqueValues("serial number")
        self.mistakes = Mistakes()

    def pod(self) -> model.Pod:
        blocks = self._racks()
        machines = self._machines({block["name"]: block for block in blocks})
        racks = tuple(self._rack(block, machines[block["name"]]) for block in blocks)
        self.mistakes.check()
        return self._complete(blocks, racks)

    def _racks(self) -> list[Block]:
        """Return the racks. Raises PodError: all devices depend on them."""
        blocks = spec.POD.children(self.top, "racks", self.mistakes)
        names, numbers = UniqueValues("rack"), UniqueValues("rack number")
        for block in blocks:
            with self.mistakes.collect():
                names.take(block["name"], None, block.error("", "name"))
            with self.mistakes.collect():
                numbers.take(str(block["number"]), "rack '%s'" % block["name"], block.error("", "number"))
            if not spec.in_range(block["number"], spec.RACK_NUMBERS):
                message = "rack '%s': the logical rack number must be %d to %d"
                self.mistakes.add(block.error(message % (block["name"], *spec.RACK_NUMBERS), "number"))
        self.mistakes.check()
        if not blocks:
            raise self.top.error("the list 'racks' is empty: add at least one rack", "racks")
        return blocks

    def _complete(self, blocks: list[Block], racks: tuple[model.Rack, ...]) -> model.Pod:
        """Return the POD with everything that refers to devices. Raises PodError."""
        objects = ObjectLists(self.top, racks, self.mistakes)
        cloud, kubernetes, deploy = None, None, {}
        hosts: tuple[str, ...] = ()
        port, agent_port = 0, 0
        with self.mistakes.collect():
            cloud = openstack_settings.read(self.top, self.plan.networks, racks, objects)
        cables = cabling.cables(list(zip(racks, blocks, strict=True)), self.plan.networks, self.mistakes)
        with self.mistakes.collect():
            hosts, port = controller.read(self.top, racks)
        with self.mistakes.collect():
            agent_port = controller.port(self.top, "agent_port")
        with self.mistakes.collect():
            kubernetes = kubernetes_nodes.read(self.top, racks, hosts)
        with self.mistakes.collect():
            deploy = self._deploy()
        found = teams.read(self.top, racks, cloud, self.mistakes)
        self.mistakes.check()
        return model.Pod(
            name=self.top["name"],
            file=self.top.file,
            machines_file=self.machines_file,
            controller_hosts=hosts,
            controller_port=port,
            agent_port=agent_port,
            networks=self.plan.networks,
            racks=racks,
            cables=openstack_settings.tagged(cables, cloud, self.plan.networks[model.DATA].vlan),
            clusters=tuple(objects.clusters.values()),
            allocations=tuple(objects.allocations.values()),
            partitions=objects.partitions,
            users=objects.users,
            cloud=cloud,
            kubernetes=kubernetes,
            deploy=deploy,
            teams=found,
        )

    def _deploy(self) -> dict[str, tuple[str, ...]]:
        block = spec.POD.child(self.top, "deploy")
        return {group: tuple(roles) for group, roles in block.items() if roles}

    def _machines(self, racks: dict[str, Block]) -> dict[str, tuple[model.Machine, ...]]:
        """Return the machines of every rack, by unit."""
        found: dict[str, dict[int, model.Machine]] = {name: {} for name in racks}
        units, heights = UniqueValues("unit"), UniqueValues("rack unit")
        try:
            rows = read_csv(self.machines_file, spec.MACHINE.spec, spec.MACHINE_REQUIRED, self.mistakes)
        except PodError as error:
            self.mistakes.add(error)
            rows = []
        for row in rows:
            with self.mistakes.collect():
                machine = self._machine(spec.MACHINE.check(row), racks, units, heights)
                found[machine.rack][machine.unit] = machine
        return {name: tuple(machine for _unit, machine in sorted(rack.items())) for name, rack in found.items()}

    def _machine(
        self, block: Block, racks: dict[str, Block], units: UniqueValues, heights: UniqueValues
    ) -> model.Machine:
        name = self.plan.device(block, "machine")
        owner = "machine '%s'" % name
        rack = block.get("rack") or (next(iter(racks)) if len(racks) == 1 else None)
        if rack is None:
            raise block.error("%s has no rack: set the column 'rack'" % owner)
        if rack not in racks:
            raise block.error("%s: %s" % (owner, unknown("rack", rack, racks)), "rack")
        unit = block["unit"]
        if not spec.in_range(unit, spec.UNITS):
            message = "%s: the unit must be %d (the lowest) to %d, not %d"
            raise block.error(message % (owner, *spec.UNITS, unit), "unit")
        units.take("%d of rack '%s'" % (unit, rack), owner, block.error("", "unit"))
        agent = block.get("agent") or name
        self.agents.take(agent, owner, block.error("", "agent"))
        if block.get("rack_unit") is not None:
            heights.take("U%d of rack '%s'" % (block["rack_unit"], rack), owner, block.error("", "rack_unit"))
        if block.get("serial"):
            self.serials.take(block["serial"], owner, block.error("", "serial"))
        number = racks[rack]["number"]
        return model.Machine(
            name,
            rack,
            (
                self._machine_interface(block, name, "bmc", model.BMC, number),
                self._machine_interface(block, name, "gw", model.GW, number),
                self._machine_interface(block, name, "rnic", model.DATA, number),
            ),
            unit,
            agent,
            block.get("rack_unit"),
            block.get("serial"),
        )

    def _machine_interface(self, block: Block, owner: str, name: str, network: str, rack: int) -> model.Interface:
        keys = ("%s_address" % name, "%s_mac" % name)
        return self.plan.interface(block, owner, name, (network,), rack, block["unit"], keys)

    def _rack(self, block: Block, machines: tuple[model.Machine, ...]) -> model.Rack:
        first = {model.DATA: model.FIRST_DATA_SWITCH, model.MANAGEMENT: model.FIRST_MANAGEMENT_SWITCH}
        switches = []
        for row in spec.RACK.children(block, "switches", self.mistakes):
            unit = first[row["kind"]]
            first[row["kind"]] += 1
            with self.mistakes.collect():
                name, interfaces = self._managed(row, "switch", block["number"], unit)
                product = row.get("model") or cabling.SWITCH_MODELS[row["kind"]]
                uplinks = (tuple(row["uplinks"]), row.get("uplink_channel"))
                switches.append(
                    model.Switch(name, block["name"], interfaces, row["kind"], product, *uplinks, row["managed"])
                )
        pdus = []
        for unit, row in enumerate(spec.RACK.children(block, "pdus", self.mistakes), model.FIRST_PDU):
            with self.mistakes.collect():
                name, interfaces = self._managed(row, "PDU", block["number"], unit)
                pdus.append(model.Pdu(name, block["name"], interfaces, row["model"], row["managed"]))
        servers = []
        for unit, row in enumerate(spec.RACK.children(block, "servers", self.mistakes), model.FIRST_SERVER):
            with self.mistakes.collect():
                servers.append(self._server(row, block, unit))
        return model.Rack(block["name"], block["number"], machines, tuple(servers), tuple(switches), tuple(pdus))

    def _managed(self, row: Block, kind: str, rack: int, unit: int) -> tuple[str, tuple[model.Interface, ...]]:
        name = self.plan.device(row, kind)
        keys = ("address", "mac")
        return name, (self.plan.interface(row, name, "management", (model.MANAGEMENT,), rack, unit, keys),)

    def _server(self, row: Block, rack: Block, unit: int) -> model.Server:
        name = self.plan.device(row, "server")
        if not row["managed"] and "controller" in row["roles"]:
            message = (
                "server '%s' has the role 'controller', so it must be managed: set controller.host, and omit the role"
            )
            raise row.error(message % name, "managed")
        # One mapping for both, so that each value keeps its line.
        values = Block(row.file, row.line)
        for key in ("addresses", "macs"):
            if row.get(key) is not None:
                part = spec.SERVER.child(row, key)
                for interface in spec.SERVER_INTERFACES:
                    if part.get(interface):
                        line = part.lines.get(interface, part.line)
                        values.put("%s %s" % (interface, key), part[interface], line)
        networks: dict[str, tuple[tuple[str, ...], int | None]] = {
            "p1": ((model.GW,), unit),
            "p2": ((model.MANAGEMENT,), unit),
            "idrac": ((model.MANAGEMENT,), None),
            "data": ((model.DATA, model.STORAGE), unit),
        }
        interfaces = tuple(
            self.plan.interface(
                values, name, key, names, rack["number"], number, ("%s addresses" % key, "%s macs" % key)
            )
            for key, (names, number) in networks.items()
        )
        server = model.Server(name, rack["name"], interfaces, tuple(row["roles"]), row["managed"], row["bare_metal"])
        if server.bare_metal and "idrac" not in server.addresses:
            message = "server '%s' is a bare-metal node without a BMC: set 'idrac' in 'addresses'"
            raise row.error(message % name, "bare_metal")
        return server
