# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of the racks of pod.yml with their devices, and of machines.csv."""

from __future__ import annotations

import itertools

from . import model, spec
from .addresses import Plan, UniqueValues, contains, is_mac
from .forms import Form
from .inventory_names import InventoryNames
from .mistakes import LeftOut, Mistakes, PodError, unknown
from .source import Block, Table, read_csv

_TEXTS = {"agent", "name", "serial"}  # columns whose values look alike


def _swapped_error(rows: list[Block], first: str, second: str) -> PodError:
    """Return the mistake of two columns whose values are exchanged in several rows."""
    message = (
        "the values of '%s' and '%s' seem to be swapped in %d lines, such as '%s' in '%s': swap the two names in the "
        "header, or the values"
    )
    return rows[0].error(message % (first, second, len(rows), rows[0][first], first))


class Devices:
    """All racks and devices of a POD, with the plan of their names and addresses."""

    def __init__(self, top: Block, machines_file: str | None, mistakes: Mistakes, left_out: LeftOut) -> None:
        """Read all devices. Devices with mistakes are recorded in ``left_out``."""
        self.plan = Plan(top, mistakes, left_out)
        self._inventory_names = InventoryNames(top, mistakes)
        self.rows: dict[str, Block] = {}  # mapping or row of each device, by its name
        self._mistakes = mistakes
        self._left_out = left_out
        self._agents, self._serials = UniqueValues("agent id"), UniqueValues("serial number")
        # Owner and row of each machine without a known rack, by rack.
        self._unknown_racks: dict[str | None, list[tuple[str, Block]]] = {}
        self._units, self._heights = UniqueValues("unit"), UniqueValues("rack unit")
        self.blocks = self._racks(top)
        self._inventory_names.check_racks(self.blocks)
        machines = self._machines(machines_file)
        self.racks = tuple(self._rack(block, machines.pop(block["name"], ())) for block in self.blocks)
        self.plan.check_assigned()

    def _racks(self, top: Block) -> list[Block]:
        """Return the racks. Those with mistakes have no number, so their devices have no assigned addresses."""
        blocks = spec.POD.children(top, "racks", self._mistakes)
        names, numbers = UniqueValues("rack", ignore_case=True), UniqueValues("rack number")
        for block in blocks:
            before = len(self._mistakes)
            if block["name"] is None:
                self._left_out.unnamed.add("rack")
                block["name"] = ""
            else:
                with self._mistakes.collect():
                    names.take(block["name"], None, block.error("", "name"))
            if len(self._mistakes) > before:
                # One of two racks with the same name needs another one, which is unknown.
                self._left_out.unnamed.add("rack")
                self._left_out.machines.add(block["name"])
            if block["number"] is not None:
                unique = False
                with self._mistakes.collect():
                    numbers.take(str(block["number"]), "rack '%s'" % block["name"], block.error("", "number"))
                    unique = True
                if not unique:
                    block["number"] = None  # otherwise all addresses of the two racks would be the same
            if block["number"] is None:
                self._left_out.numbers.add(block["name"])
        if "racks" in top.invalid or not blocks:
            self._left_out.unnamed.update(LeftOut.KINDS)
            self._left_out.servers = True
        if not blocks and "racks" not in top.invalid:
            self._mistakes.add(top.error("the list 'racks' is empty: add at least one rack", "racks"))
        return blocks

    def _machines(self, path: str | None) -> dict[str, tuple[model.Machine, ...]]:
        """Return the machines of every rack, by unit."""
        racks = {block["name"]: block for block in self.blocks}
        found: dict[str, dict[int, model.Machine]] = {name: {} for name in racks}
        table = None
        with self._mistakes.collect():
            table = read_csv(path, spec.MACHINE.spec, spec.MACHINE_REQUIRED, self._mistakes) if path else None
        if table is None or not table.complete:
            self._left_out.unnamed.add("machine")
            self._left_out.machines.update(racks)
        elif not table.rows:
            self._left_out.unnamed.add("machine")
            self._left_out.machines.update(racks)
            message = "has no machines: add a line for each IPU-Machine"
            self._mistakes.add(PodError(table.file, None, message))
        if table:
            self._report_swapped_columns(table, racks)
        for row in table.rows if table else ():
            block = spec.MACHINE.read(row, self._mistakes)
            machine = None
            with self._mistakes.collect():
                machine = self._machine(block, racks)
            if machine:
                found[machine.rack][machine.unit] = machine
            else:
                if block["name"]:
                    self._left_out.names.add(block["name"])
                self._left_out.machines.update([block["rack"]] if block["rack"] in racks else racks)
        self._report_unknown_racks(racks)
        for units in found.values():
            self._check_heights([machine for _unit, machine in sorted(units.items()) if machine.rack_unit])
        return {name: tuple(machine for _unit, machine in sorted(rack.items())) for name, rack in found.items()}

    def _report_swapped_columns(self, table: Table, racks: dict[str, Block]) -> None:
        """Record two columns whose values are exchanged in most lines, once. These values are not read."""
        cells = {
            column: [row for row in table.rows if column in row and column not in row.unusable]
            for column in spec.MACHINE.spec
        }
        few = max(1, len(table.rows) // 2)  # of the lines: in so many, each value is a mistake of its own
        for first in cells:
            if sum(not self._fits(row[first], first, racks) for row in cells[first]) <= few:
                continue
            for second in cells:
                if {first, second} <= _TEXTS:
                    continue
                both = [row for row in cells[first] if second in row and second not in row.unusable]
                rows = [row for row in both if self._swapped(row, first, second, racks)]
                if len(rows) > few:
                    self._mistakes.add(_swapped_error(rows, first, second))
                    for row in rows:
                        row.unusable.update((first, second))
                    return

    def _swapped(self, row: Block, first: str, second: str, racks: dict[str, Block]) -> bool:
        """Return whether the first value of a row fits only the second column, and the second one the first column."""
        found = [self._fits(row[value], column, racks) for value in (first, second) for column in (first, second)]
        return not found[0] and found[1] and found[2]

    def _fits(self, text: str, column: str, racks: dict[str, Block]) -> bool:
        """Return whether a text may be a value of a column of machines.csv."""
        option = spec.MACHINE.declared[column]
        if column == "rack":
            return text in racks
        if column.endswith("_mac"):
            return is_mac(text)
        if column.endswith("_address"):
            network = self.plan.networks[model.DATA if column == "rnic_address" else column.partition("_")[0]]
            return contains(network.subnet, text)
        if "range" in option:
            lowest, highest = option["range"]
            return text.isdecimal() and lowest <= int(text) <= highest
        form: Form = option["form"]
        return form.accepts(text)

    def _check_heights(self, machines: list[model.Machine]) -> None:
        """Record the first machine of a rack that is mounted below one with a lower unit."""
        for lower, upper in itertools.pairwise(machines):
            if (upper.rack_unit or 0) < (lower.rack_unit or 0):
                message = (
                    "'%s' (unit %d) is mounted in U%d, below '%s' (unit %d) in U%d: number the units from the lowest up"
                )
                values = (upper.name, upper.unit, upper.rack_unit, lower.name, lower.unit, lower.rack_unit)
                self._mistakes.add(self.rows[upper.name].error(message % values, "rack_unit"))
                return

    def _machine(self, block: Block, racks: dict[str, Block]) -> model.Machine | None:
        """Return a machine, None if its name or place has a mistake.

        Raises PodError if another device has its name: the row may be a copy, so its other values are not compared.
        """
        name, unit = block["name"], block["unit"]
        if name is None:
            self._left_out.unnamed.add("machine")
        else:
            self._take(block, "machine")
        owner = "machine '%s'" % name if name else "machine"
        rack, placed = self._rack_of_machine(block, owner, racks), False
        with self._mistakes.collect():
            if rack is not None and unit is not None:
                self._units.take("%d of rack '%s'" % (unit, rack), owner, block.error("", "unit"))
                placed = True
        agent = block.get("agent") or name
        if agent:
            with self._mistakes.collect():
                self._agents.take(agent, owner, block.error("", "agent"))
        if rack is not None and block.get("rack_unit") is not None:
            with self._mistakes.collect():
                self._heights.take("U%d of rack '%s'" % (block["rack_unit"], rack), owner, block.error("", "rack_unit"))
        if block.get("serial"):
            with self._mistakes.collect():
                self._serials.take(block["serial"], owner, block.error("", "serial"))
        number = racks[rack]["number"] if rack is not None and placed else None
        interfaces = tuple(
            self.plan.interface(block, name, key, (network,), number, unit, ("%s_address" % key, "%s_mac" % key))
            for key, network in (("bmc", model.BMC), ("gw", model.GW), ("rnic", model.DATA))
        )
        if name is None or rack is None or not placed:
            return None
        self.rows[name] = block
        return model.Machine(name, rack, interfaces, unit, agent, block.get("rack_unit"), block.get("serial"))

    def _rack_of_machine(self, block: Block, owner: str, racks: dict[str, Block]) -> str | None:
        """Return the name of the rack of a machine, None if it is invalid, missing or unknown."""
        if "rack" in block.invalid:
            return None
        rack: str | None = block.get("rack") or (next(iter(racks)) if len(racks) == 1 else None)
        if rack is None or rack not in racks:
            self._unknown_racks.setdefault(rack, []).append((owner, block))
            return None
        return rack

    def _report_unknown_racks(self, racks: dict[str, Block]) -> None:
        """Record each unknown rack once: all its machines have one cause, such as a rack with a new name.

        Machines without a rack have one cause too: the column.
        """
        for rack, machines in self._unknown_racks.items():
            (owner, first), last = machines[0], machines[-1][1]
            if len(machines) > 1:
                owner = "%d machines in lines %d to %d" % (len(machines), first.line, last.line)
            if rack is None:
                verb = "have" if len(machines) > 1 else "has"
                error = first.error("%s %s no rack: set the column 'rack'" % (owner, verb)).unless(not racks)
            else:
                message = "%s: %s" % (owner, unknown("rack", rack, racks, self._mistakes))
                error = first.error(message, "rack").unless("rack" in self._left_out.unnamed)
            self._mistakes.add(error)

    def _rack(self, block: Block, machines: tuple[model.Machine, ...]) -> model.Rack:
        name, number = block["name"], block["number"]
        for key, kind in (("switches", "switch"), ("servers", "server"), ("pdus", "PDU")):
            if key in block.invalid:
                self._left_out.unnamed.add(kind)
        if "switches" in block.invalid:
            self._left_out.switches.add(name)
        if "servers" in block.invalid:
            self._left_out.servers = True
        switches = self._switches(block)
        pdus = []
        for unit, row in enumerate(spec.RACK.children(block, "pdus", self._mistakes), model.FIRST_PDU):
            with self._mistakes.collect():
                named = self._take_name(row, "PDU")
                interfaces = self._management(row, number, unit)
                if named:
                    managed = row["managed"] is not False
                    pdus.append(model.Pdu(row["name"], name, interfaces, row["model"] or "", managed))
        servers = []
        rows = spec.RACK.children(block, "servers", self._mistakes)
        for unit, row in enumerate(rows, model.FIRST_SERVER):
            with self._mistakes.collect():
                named = self._take_name(row, "server")
                server = self._server(row, block, unit)
                if named:
                    servers.append(server)
        if len(servers) < len(rows):
            self._left_out.servers = True
        return model.Rack(name, number or 0, machines, tuple(servers), switches, tuple(pdus))

    def _take_name(self, row: Block, kind: str) -> bool:
        """Record the name of a device, and return whether it has a valid one.

        Raises PodError if another device has this name: the device may be a copy, so the rest of it is not compared.
        """
        if row["name"] is None:
            self._left_out.unnamed.add(kind)
            return False
        self._take(row, kind)
        self.rows[row["name"]] = row
        return True

    def _take(self, block: Block, kind: str) -> None:
        """Record a name. Raises PodError for a used one: one of the devices needs another name, which is unknown."""
        try:
            self.plan.device(block, kind)
        except PodError:
            self._left_out.unnamed.add(kind)
            raise
        self._inventory_names.check_device(block, kind)

    def _switches(self, block: Block) -> tuple[model.Switch, ...]:
        first = {model.DATA: model.FIRST_DATA_SWITCH, model.MANAGEMENT: model.FIRST_MANAGEMENT_SWITCH}
        number = block["number"]
        switches = []
        rows = spec.RACK.children(block, "switches", self._mistakes)
        for row in rows:
            name, kind = row["name"], row["kind"]
            if kind is None:
                number = None  # the assigned addresses of this switch and the next ones are unknown
            unit = first.get(kind, 0)
            first[kind] = unit + 1
            with self._mistakes.collect():
                named = self._take_name(row, "switch")
                interfaces = self._management(row, number, unit)
                if kind is None and named:
                    self._left_out.names.add(name)
                elif named:
                    product = row.get("model") or model.SWITCH_MODELS[kind]
                    uplinks = (tuple(row["uplinks"] or ()), row.get("uplink_channel"))
                    managed = row["managed"] is not False
                    switches.append(model.Switch(name, block["name"], interfaces, kind, product, *uplinks, managed))
        if len(switches) < len(rows):
            self._left_out.switches.add(block["name"])
        return tuple(switches)

    def _management(self, row: Block, rack: int | None, unit: int) -> tuple[model.Interface, ...]:
        networks = (model.MANAGEMENT,)
        return (self.plan.interface(row, row["name"], "management", networks, rack, unit, ("address", "mac")),)

    def _server(self, row: Block, rack: Block, unit: int) -> model.Server:
        name, roles, managed = row["name"], tuple(row["roles"] or ()), row["managed"] is not False
        subject = "server '%s'" % name if name else "server"
        if not managed and "controller" in roles:
            message = "%s has the role 'controller', so it must be managed: set controller.host, and omit the role"
            self._mistakes.add(row.error(message % subject, "managed"))
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
            message = "%s is a bare-metal node without a BMC: set 'idrac' in 'addresses'"
            self._mistakes.add(row.error(message % subject, "bare_metal").unless("idrac addresses" in values.invalid))
        return model.Server(name, rack["name"], interfaces, roles, managed, bare_metal)
