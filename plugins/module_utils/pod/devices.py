# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of the racks of pod.yml with their devices, and of machines.csv."""

from __future__ import annotations

from . import model, spec
from .addresses import Plan, UniqueValues
from .mistakes import LeftOut, Mistakes
from .source import Block, read_csv, unknown


class Devices:
    """All racks and devices of a POD, with the plan of their names and addresses."""

    def __init__(self, top: Block, machines_file: str | None, mistakes: Mistakes, left_out: LeftOut) -> None:
        """Read all devices. Devices with mistakes are recorded in ``left_out``."""
        self.plan = Plan(top, mistakes, left_out)
        self.rows: dict[str, Block] = {}  # mapping or row of each device, by its name
        self._mistakes = mistakes
        self._left_out = left_out
        self._agents, self._serials = UniqueValues("agent id"), UniqueValues("serial number")
        self._units, self._heights = UniqueValues("unit"), UniqueValues("rack unit")
        self.blocks = self._racks(top)
        machines = self._machines(machines_file)
        self.racks = tuple(self._rack(block, machines.pop(block["name"], ())) for block in self.blocks)

    def _racks(self, top: Block) -> list[Block]:
        """Return the racks. Those with mistakes have no number, so their devices have no assigned addresses."""
        blocks = spec.POD.children(top, "racks", self._mistakes)
        names, numbers = UniqueValues("rack"), UniqueValues("rack number")
        for block in blocks:
            before = len(self._mistakes)
            if block["name"] is None:
                self._left_out.unnamed = True
                block["name"] = ""
            else:
                with self._mistakes.collect():
                    names.take(block["name"], None, block.error("", "name"))
            if len(self._mistakes) > before:
                self._left_out.machines.add(block["name"])
            if block["number"] is None:
                self._left_out.numbers.add(block["name"])
            else:
                with self._mistakes.collect():
                    numbers.take(str(block["number"]), "rack '%s'" % block["name"], block.error("", "number"))
        if "racks" in top.invalid:
            self._left_out.unnamed = self._left_out.servers = True
        elif not blocks:
            self._left_out.unnamed = self._left_out.servers = True
            self._mistakes.add(top.error("the list 'racks' is empty: add at least one rack", "racks"))
        return blocks

    def _machines(self, path: str | None) -> dict[str, tuple[model.Machine, ...]]:
        """Return the machines of every rack, by unit."""
        racks = {block["name"]: block for block in self.blocks}
        found: dict[str, dict[int, model.Machine]] = {name: {} for name in racks}
        before = len(self._mistakes)
        rows: list[Block] = []
        with self._mistakes.collect():
            rows = read_csv(path, spec.MACHINE.spec, spec.MACHINE_REQUIRED, self._mistakes) if path else []
        if path is None or len(self._mistakes) > before:
            self._left_out.unnamed = True
            self._left_out.machines.update(racks)
        for row in rows:
            block = spec.MACHINE.read(row, self._mistakes)
            machine = None
            with self._mistakes.collect():
                machine = self._machine(block, racks)
            if machine:
                found[machine.rack][machine.unit] = machine
            else:
                self._left_out.name(block["name"])
                self._left_out.machines.update([block["rack"]] if block["rack"] in racks else racks)
        return {name: tuple(machine for _unit, machine in sorted(rack.items())) for name, rack in found.items()}

    def _machine(self, block: Block, racks: dict[str, Block]) -> model.Machine | None:
        """Return a machine, None if its place has a mistake. Raises PodError."""
        name, unit = block["name"], block["unit"]
        if not {"name", "unit", "rack"}.isdisjoint(block.invalid):
            return None
        self.plan.device(block, "machine")
        owner = "machine '%s'" % name
        rack = block.get("rack") or (next(iter(racks)) if len(racks) == 1 else None)
        if rack is None:
            raise block.error("%s has no rack: set the column 'rack'" % owner).unless(not racks)
        if rack not in racks:
            message = "%s: %s" % (owner, unknown("rack", rack, racks))
            raise block.error(message, "rack").unless(self._left_out.unnamed)
        self._units.take("%d of rack '%s'" % (unit, rack), owner, block.error("", "unit"))
        agent = block.get("agent") or name
        with self._mistakes.collect():
            self._agents.take(agent, owner, block.error("", "agent"))
        if block.get("rack_unit") is not None:
            with self._mistakes.collect():
                self._heights.take("U%d of rack '%s'" % (block["rack_unit"], rack), owner, block.error("", "rack_unit"))
        if block.get("serial"):
            with self._mistakes.collect():
                self._serials.take(block["serial"], owner, block.error("", "serial"))
        number = racks[rack]["number"]
        interfaces = tuple(
            self.plan.interface(block, name, key, (network,), number, unit, ("%s_address" % key, "%s_mac" % key))
            for key, network in (("bmc", model.BMC), ("gw", model.GW), ("rnic", model.DATA))
        )
        self.rows[name] = block
        return model.Machine(name, rack, interfaces, unit, agent, block.get("rack_unit"), block.get("serial"))

    def _rack(self, block: Block, machines: tuple[model.Machine, ...]) -> model.Rack:
        name, number = block["name"], block["number"]
        if "switches" in block.invalid:
            self._left_out.unnamed = True
            self._left_out.switches.add(name)
        if "servers" in block.invalid:
            self._left_out.unnamed = self._left_out.servers = True
        if "pdus" in block.invalid:
            self._left_out.unnamed = True
        switches = self._switches(block)
        pdus = []
        for unit, row in enumerate(spec.RACK.children(block, "pdus", self._mistakes), model.FIRST_PDU):
            if self._named(row, "PDU"):
                interfaces = self._management(row, number, unit)
                pdus.append(model.Pdu(row["name"], name, interfaces, row["model"] or "", row["managed"] is not False))
        servers = []
        for unit, row in enumerate(spec.RACK.children(block, "servers", self._mistakes), model.FIRST_SERVER):
            if self._named(row, "server"):
                servers.append(self._server(row, block, unit))
            else:
                self._left_out.servers = True
        return model.Rack(name, number or 0, machines, tuple(servers), switches, tuple(pdus))

    def _named(self, row: Block, kind: str) -> bool:
        """Record the name of a device, and return whether it is valid and unique."""
        found = False
        if row["name"] is not None:
            with self._mistakes.collect():
                self.rows.setdefault(self.plan.device(row, kind), row)
                found = True
        if not found:
            self._left_out.name(row["name"])
        return found

    def _switches(self, block: Block) -> tuple[model.Switch, ...]:
        first = {model.DATA: model.FIRST_DATA_SWITCH, model.MANAGEMENT: model.FIRST_MANAGEMENT_SWITCH}
        switches = []
        for row in spec.RACK.children(block, "switches", self._mistakes):
            name, kind = row["name"], row["kind"]
            valid = self._named(row, "switch")
            if kind is None or not valid:
                self._left_out.name(name)
                self._left_out.switches.add(block["name"])
                continue
            unit = first[kind]
            first[kind] += 1
            interfaces = self._management(row, block["number"], unit)
            product = row.get("model") or model.SWITCH_MODELS[kind]
            uplinks = (tuple(row["uplinks"] or ()), row.get("uplink_channel"))
            managed = row["managed"] is not False
            switches.append(model.Switch(name, block["name"], interfaces, kind, product, *uplinks, managed))
        return tuple(switches)

    def _management(self, row: Block, rack: int | None, unit: int) -> tuple[model.Interface, ...]:
        networks = (model.MANAGEMENT,)
        return (self.plan.interface(row, row["name"], "management", networks, rack, unit, ("address", "mac")),)

    def _server(self, row: Block, rack: Block, unit: int) -> model.Server:
        name, roles, managed = row["name"], tuple(row["roles"] or ()), row["managed"] is not False
        if not managed and "controller" in roles:
            message = (
                "server '%s' has the role 'controller', so it must be managed: set controller.host, and omit the role"
            )
            self._mistakes.add(row.error(message % name, "managed"))
        # One mapping for both, so that each value keeps its line.
        values = Block(row.file, row.line)
        for key in ("addresses", "macs"):
            part = spec.SERVER.child(row, key, self._mistakes)
            invalid = spec.SERVER_INTERFACES if key in row.invalid else part.invalid
            values.invalid.update("%s %s" % (interface, key) for interface in invalid)
            for interface in spec.SERVER_INTERFACES:
                if part.get(interface):
                    line = part.lines.get(interface, part.line)
                    values.put("%s %s" % (interface, key), part[interface], line)
        if row.invalid or values.invalid:
            self._left_out.servers = True
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
        bare_metal = bool(row["bare_metal"])
        if bare_metal and not values.get("idrac addresses"):
            message = "server '%s' is a bare-metal node without a BMC: set 'idrac' in 'addresses'"
            self._mistakes.add(row.error(message % name, "bare_metal").unless("idrac addresses" in values.invalid))
        return model.Server(name, rack["name"], interfaces, roles, managed, bare_metal)
