# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a POD in a folder: which they are, whether they are valid, and what they contain."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from openipu.pod_files import variable_values, variables
from openipu.shared.pod import model
from openipu.shared.pod.inventory_names import is_pod_file
from openipu.shared.pod.load import PodError, load

_NAMES = ("pod.yml", "pod.yaml")


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

    @classmethod
    def of(cls, error: PodError) -> Mistake:
        """Return the mistake of an error, with a path relative to the current folder."""
        return cls(os.path.relpath(error.file), error.line, error.column, error.message)

    @classmethod
    def below(cls, folder: Path, error: PodError) -> Mistake:
        """Return the mistake of an error in a file whose path starts at a folder, or is absolute."""
        return replace(cls.of(error), file=os.path.relpath(folder / error.file))

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
        if path.suffix.lower() == ".csv":
            raise PodFilesError(
                f"Cannot read a POD from {path}: it is a table. Name its pod.yml, or the folder of both."
            )
        return path
    for name in _NAMES:
        if (path / name).exists():
            return path / name
    found = sorted(each for each in path.iterdir() if is_pod_file(each.name))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(each.name for each in found)
        raise PodFilesError(f"Cannot choose a POD of {path}: it holds {names}. Name one of these files.")
    raise PodFilesError(f"Cannot find a POD in {path}: it has no pod.yml. Create one with 'openipu-pod init {path}'.")


def read(path: Path) -> tuple[model.Pod | None, list[Mistake]]:
    """Return the POD of a file, or None and its mistakes, in the order of their places.

    Files of variables that Ansible cannot read are mistakes too, because no playbook runs then.
    """
    unreadable = _of_variables(path.parent)
    try:
        pod = load(str(path))
    except PodError as error:
        return None, [*(Mistake.of(each) for each in error.mistakes), *unreadable]
    return (None if unreadable else pod), unreadable


def _of_variables(folder: Path) -> list[Mistake]:
    """Return the mistakes in files of variables beside a pod.yml."""
    try:
        found = variables.read(folder)
    except OSError:
        return []  # ansible-playbook reports it
    templates = variable_values.without_quotes((folder / path).absolute() for path in found.files)
    return [Mistake.below(folder, each) for each in (*found.invalid(folder), *templates)]


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
