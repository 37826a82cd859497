# SPDX-License-Identifier: GPL-3.0-or-later
"""Warnings about a valid POD: what the playbooks accept, but what is probably not as intended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from openipu.pod_files import first_pod, unknown_owners, variable_values, variables
from openipu.pod_files.files import Mistake, count
from openipu.shared.eos.running_config import ranges
from openipu.shared.pod import model, spec
from openipu.shared.pod.cabling import bonded
from openipu.shared.pod.mistakes import Mistakes, PodError, similar
from openipu.shared.pod.source import Block, read_csv, read_yaml
from openipu.twin.devices.eos.ports import MODELS as SWITCH_MODELS
from openipu.twin.devices.pdu.models import MODELS as PDU_MODELS

# Lists of a rack with their devices, known models, and consequence of another model.
_MODELS: tuple[tuple[str, str, Mapping[str, object], str], ...] = (
    ("switches", "switch", SWITCH_MODELS, "its ports are not checked, and rehearsals omit it"),
    ("pdus", "PDU", PDU_MODELS, "rehearsals omit it"),
)
_LOCAL = 0x02  # bit of the first octet of MACs without a vendor


def warnings(pod: model.Pod) -> list[Mistake]:
    """Return the warnings of a valid POD, in the order of their places: pod.yml, machines.csv, variables."""
    top = read_yaml(pod.file)
    racks: list[Block] = top["racks"]
    found = sorted((*_unknown_models(pod, racks), *_divided_bonds(pod, racks)), key=_place)
    folder = Path(pod.file).parent
    of_pod = [Mistake.of(each) for each in (*found, *_examples(pod))]
    try:
        files = variables.read(folder)
        owners = [Mistake.below(folder, each) for each in unknown_owners.found(pod, top, files)]
    except OSError:
        return of_pod  # as in ``of_variables``
    return [*of_pod, *owners, *_of_files(folder, files)]


def _place(error: PodError) -> tuple[int, int]:
    return error.line or 0, error.column or 0


def of_variables(folder: Path) -> list[Mistake]:
    """Return the warnings about variables of Ansible beside a pod.yml. Unreadable files are left to Ansible."""
    try:
        files = variables.read(folder)
    except OSError:
        return []
    return _of_files(folder, files)


def _of_files(folder: Path, files: variables.Variables) -> list[Mistake]:
    """Return the warnings about the names and values in files of variables."""
    values = variable_values.invalid((folder / path).absolute() for path in files.files)
    return [Mistake.below(folder, each) for each in (*files.mistyped(variable_values.role_variables()), *values)]


def _examples(pod: model.Pod) -> Iterator[PodError]:
    """Yield a warning if machines have MACs or serial numbers of an example."""
    rows = {row["name"]: row for row in read_csv(pod.machines_file, spec.MACHINE.spec, (), Mistakes()).rows}
    found = {machine.name: columns for machine in pod.machines if (columns := _example_columns(machine))}
    if not found:
        return
    lines = sorted(rows[name].line for name in found)
    places = ("lines " if len(lines) > 1 else "line ") + ranges(lines).replace(",", ", ").replace("-", " to ")
    columns = sorted({column for each in found.values() for column in each})
    message = (
        f"{count(len(lines), 'machine')} in {places} with example values in {', '.join(columns)}: replace them with "
        "those on the labels."
    )
    if any(column.endswith("_mac") for column in columns):
        message += " Otherwise, DHCP and the check of the cabling do not find these machines."
    yield PodError(pod.machines_file, lines[0], message)


def _example_columns(machine: model.Machine) -> list[str]:
    """Return the columns of machines.csv with values of an example."""
    columns = [f"{name}_mac" for name, mac in machine.macs.items() if first_pod.is_example_mac(name, mac)]
    real = not any(int(mac[:2], 16) & _LOCAL for mac in machine.macs.values())  # machines of the twin have no vendor
    if real and machine.serial and machine.serial.startswith(first_pod.EXAMPLE_SERIAL):
        columns.append("serial")
    return columns


def _unknown_models(pod: model.Pod, racks: Sequence[Block]) -> Iterator[PodError]:
    """Yield a warning for each managed device with a model that the project does not know."""
    for rack, block in zip(pod.racks, racks, strict=True):
        devices: tuple[Sequence[model.Switch | model.Pdu], ...] = (rack.switches, rack.pdus)
        for (key, label, known, consequence), of_kind in zip(_MODELS, devices, strict=True):
            # The validated device has the values in their types, the row has their lines.
            for device, row in zip(of_kind, block.get(key) or (), strict=True):
                product = device.model
                if product and product not in known and device.managed:
                    near = similar(product, known)
                    hint = f": did you mean '{near}'?" if near else "."
                    message = (
                        f"{label} '{device.name}': unknown model '{product}'{hint} Known are {', '.join(known)}. "
                        f"With another model, {consequence}."
                    )
                    yield row.error(message, "model")


def _divided_bonds(pod: model.Pod, racks: Sequence[Block]) -> Iterator[PodError]:
    """Yield a warning for each bond with links to several switches, unless the playbooks configure none of them."""
    managed = {switch.name for rack in pod.racks for switch in rack.switches if switch.managed}
    links: dict[str, list[model.Cable]] = {}
    for cable in pod.cables:
        if bonded(cable.connector):
            links.setdefault(cable.device, []).append(cable)
    # The reference port map has both links in one switch, so 'cables' moved one of them.
    rows = {str(row["device"]): row for block in racks for row in block.get("cables") or () if bonded(row["connector"])}
    for device, cables in links.items():
        switches = {cable.switch for cable in cables}
        if len(switches) > 1 and managed & switches:
            places = " and ".join(sorted(f"{cable.connector} to '{cable.switch}'" for cable in cables))
            message = (
                f"server '{device}': its bond has links to several switches, {places}. The playbooks configure no "
                "MLAG, so only one link carries traffic. Use ports of one switch, or configure MLAG yourself and set "
                "'managed: false' for these switches."
            )
            yield rows[device].error(message, "switch")
