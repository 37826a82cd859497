# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a POD in a folder: which they are, whether they are valid, and what they contain."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from openipu.shared.pod import model
from openipu.shared.pod.cabling import bonded
from openipu.shared.pod.load import PodError, load
from openipu.shared.pod.mistakes import similar
from openipu.shared.pod.source import Block, read_yaml
from openipu.twin.devices.eos.ports import MODELS as SWITCH_MODELS
from openipu.twin.devices.pdu.models import MODELS as PDU_MODELS

_SUFFIXES = (".pod.yml", ".pod.yaml")  # of the inventory plugin
_NAMES = ("pod.yml", "pod.yaml")
# Lists of a rack with their devices, known models, and consequence of another model.
_MODELS: tuple[tuple[str, str, Mapping[str, object], str], ...] = (
    ("switches", "switch", SWITCH_MODELS, "its ports are not checked, and rehearsals omit it"),
    ("pdus", "PDU", PDU_MODELS, "rehearsals omit it"),
)


class PodFilesError(Exception):
    """Raised when the files of a POD cannot be found, read or written, with a message for users."""

    error_code = PodError.error_code


@dataclass(frozen=True)
class Mistake:
    """Mistake or warning in a file of a POD. ``line`` and ``column`` count from 1; None where the place is larger."""

    file: str
    line: int | None
    column: int | None
    message: str

    @property
    def text(self) -> str:
        """Place and message in the form of compilers, which editors and terminals make clickable."""
        return f"{self._place}: {self.message}"

    @property
    def warning(self) -> str:
        """Place and message of a warning."""
        return f"{self._place}: warning: {self.message}"

    @property
    def _place(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)

    def as_json(self) -> dict[str, str | int | None]:
        """Return the mistake as plain data."""
        return asdict(self)


def find(path: Path) -> Path:
    """Return the file ``pod.yml`` of a folder, or the path itself if it is a file. Raises PodFilesError."""
    if not path.is_dir():
        return path
    for name in _NAMES:
        if (path / name).exists():
            return path / name
    found = sorted(each for each in path.iterdir() if each.name.endswith(_SUFFIXES))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(each.name for each in found)
        raise PodFilesError(f"Cannot choose a POD of {path}: it holds {names}. Name one of these files.")
    raise PodFilesError(f"Cannot find a POD in {path}: it has no pod.yml. Create one with 'openipu-pod init {path}'.")


def read(path: Path) -> tuple[model.Pod | None, list[Mistake]]:
    """Return the POD of a file, or None and its mistakes, in the order of their places."""
    try:
        return load(str(path)), []
    except PodError as error:
        return None, [_mistake(each) for each in error.mistakes]


def warnings(pod: model.Pod) -> list[Mistake]:
    """Return the warnings of a valid POD, in the order of their places."""
    racks: list[Block] = read_yaml(pod.file)["racks"]
    found = [*_unknown_models(pod, racks), *_divided_bonds(pod, racks)]
    return [_mistake(each) for each in sorted(found, key=lambda each: (each.line or 0, each.column or 0))]


def _mistake(error: PodError) -> Mistake:
    return Mistake(os.path.relpath(error.file), error.line, error.column, error.message)


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


def contents(pod: model.Pod) -> str:
    """Return the number of racks and devices, as text for messages."""
    servers = sum(len(rack.servers) for rack in pod.racks)
    switches = sum(len(rack.switches) for rack in pod.racks)
    pdus = sum(len(rack.pdus) for rack in pod.racks)
    counts = [
        (len(pod.racks), "rack", "s"),
        (len(pod.machines), "IPU-Machine", "s"),
        (servers, "server", "s"),
        (switches, "switch", "es"),
        (pdus, "PDU", "s"),
    ]
    return ", ".join(count(number, name, plural) for number, name, plural in counts if number)


def count(number: int, noun: str, plural: str = "s") -> str:
    """Return a number of things as text; ``plural`` is the ending of the noun."""
    return f"{number} {noun}{'' if number == 1 else plural}"
