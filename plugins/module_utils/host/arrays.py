# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An md array with an xfs file system: detection, checks and creation. No data is ever wiped."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

from ..reconcile import Action, Failure, Family, Field, ItemError, Mode, Object, Step, UserError
from .commands import CommandError, Host, format_cause
from .disks import Disk, inspect_disk

FILE_SYSTEM = "xfs"
LABEL_LENGTH = 12  # limit of xfs

ARRAY = Family("array", (Field("level"), Field("disks", Mode.SET), Field("active")), key="name")
FILESYSTEM = Family("filesystem", (Field("type"), Field("label", Mode.WRITE_ONLY)), key="device")


@dataclass(frozen=True)
class ExistingArray:
    """An array that exists on the disks.

    ``device`` is empty while the array is not assembled. ``missing`` is the number of lost members.
    ``non_members`` are desired disks that are not in the array.
    """

    uuid: str
    level: str
    members: tuple[str, ...]
    non_members: tuple[str, ...]
    device: str = ""
    missing: int = 0

    def as_object(self, name: str) -> Object:
        """Return the array in the form that the engine compares."""
        return {"name": name, "level": self.level, "disks": list(self.members), "active": bool(self.device)}


def device_of(name: str) -> str:
    """Return the path of an array, which does not depend on its number."""
    return "/dev/md/%s" % name


def find_array(host: Host, name: str, level: str, paths: t.Sequence[str]) -> ExistingArray | None:
    """Return the array of that name on those disks, or None when all of the disks are empty.

    Raises UserError when a disk holds anything else, or when the array cannot become the desired one.
    """
    disks = [inspect_disk(host, path) for path in paths]
    members = [disk for disk in disks if _array_name(disk) == name]
    others = [disk for disk in disks if disk not in members]
    _reject_blocked_disks(name, others)
    if not members:
        _reject_used_name(name)
        return None
    array = _existing_array(name, members, others)
    _check_compatible(name, level, array)
    return array


def _reject_blocked_disks(name: str, disks: list[Disk]) -> None:
    blocked: dict[str, list[str]] = {}
    for disk in disks:
        if disk.obstacle:
            blocked.setdefault(disk.obstacle, []).append(disk.path)
    if blocked:
        causes = "; ".join("%s: %s" % (", ".join(paths), obstacle) for obstacle, paths in blocked.items())
        raise UserError("Cannot use some disks for array '%s': %s. No disk was changed." % (name, causes))


def _array_name(disk: Disk) -> str:
    """Return the name of the disk's array, without the prefix ``HOST:``."""
    return disk.md.get("MD_NAME", "").rpartition(":")[2]


def _reject_used_name(name: str) -> None:
    if Path(device_of(name)).exists():
        raise UserError(
            "Cannot create array '%s': an array of this name exists on other disks. Set disks to its disks, or "
            "change name." % name
        )


def _existing_array(name: str, members: list[Disk], others: list[Disk]) -> ExistingArray:
    uuids = {disk.md.get("MD_UUID", "") for disk in members}
    if len(uuids) > 1:
        raise UserError(
            "Cannot use disks %s for array '%s': they belong to different arrays of this name. Omit those of one array."
            % (", ".join(disk.path for disk in members), name)
        )
    device = min((holder for disk in members for holder in disk.holders if holder.startswith("/dev/md")), default="")
    # A disk that was removed from a running array keeps its superblock.
    inside = [disk for disk in members if not device or device in disk.holders]
    if device and not is_active(device):
        device = ""
    return ExistingArray(
        uuid=uuids.pop(),
        level=members[0].md.get("MD_LEVEL", ""),
        members=tuple(disk.path for disk in inside),
        non_members=tuple(disk.path for disk in [*others, *members] if disk not in inside),
        device=device,
        missing=int(members[0].md.get("MD_DEVICES", "0")) - len(inside),
    )


def is_active(device: str) -> bool:
    """Return whether an array can be read. An array with too few disks also has a device, of size 0."""
    state = Path("/sys/class/block", Path(device).name, "md", "array_state")
    return state.read_text().strip() not in ("inactive", "clear")


def _check_compatible(name: str, level: str, array: ExistingArray) -> None:
    """Reject changes of an existing array that would lose data."""
    if array.level != level:
        raise UserError(
            "Cannot change the level of array '%s' from %s to %s. Set level to %s, or save its data and remove the "
            "array first." % (name, array.level, level, array.level)
        )
    if array.missing > 0 and not array.device:
        raise UserError(
            "Cannot start array '%s': it lacks %d of its disks. Connect them, or start it without them: mdadm --run."
            % (name, array.missing)
        )


def warnings(name: str, array: ExistingArray) -> list[str]:
    """Return warnings about missing disks and about desired disks outside of the array."""
    found = []
    if array.missing > 0:
        found.append(
            "Array '%s' lacks %d of its disks. It runs with less or no redundancy. Replace them."
            % (name, array.missing)
        )
    if array.non_members:
        found.append(
            "Array '%s' does not include %s. Add an empty disk with mdadm --manage %s --add."
            % (name, ", ".join(array.non_members), device_of(name))
        )
    return found


def find_file_system(host: Host, device: str, name: str) -> Object | None:
    """Return the file system of a running array, or None when it is empty. Raises UserError for other content."""
    disk = inspect_disk(host, device)
    if FILE_SYSTEM in [item.type for item in disk.signatures]:
        return {"device": device_of(name), "type": FILE_SYSTEM}
    if disk.parts or disk.holders or disk.signatures or not disk.blank:
        content = " and ".join(map(str, disk.signatures)) or ", ".join(disk.parts + disk.holders) or "unknown data"
        raise UserError(
            "Cannot create the %s file system of array '%s': the array holds %s. Nothing was changed. Save its data "
            "and empty it with wipefs --all %s, or change name." % (FILE_SYSTEM, name, content, device_of(name))
        )
    return None


class Writer:
    """Writer of arrays and file systems. It never forces mdadm or mkfs."""

    def __init__(self, host: Host, array: ExistingArray | None, chunk: int | None) -> None:
        self._host, self._array, self._chunk = host, array, chunk

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        errors: list[ItemError] = []
        for step in steps:
            if errors:
                message = "Not applied because of a previous error: %s" % errors[0].message
                errors.append(ItemError.of(step, message, Failure.NOT_TRIED, errors[0].error_code))
                continue
            try:
                self._apply(step)
            except UserError as error:
                verb = "create" if step.action is Action.CREATE else "start"
                message = "Cannot %s %s '%s': %s" % (verb, step.family.title, step.key, format_cause(error))
                errors.append(ItemError.of(step, message, error_code=error.error_code))
        return errors

    def _apply(self, step: Step) -> None:
        if step.family is FILESYSTEM:
            self._host.run("mkfs.xfs", "-q", "-L", step.full_object["label"], _real(step.key))
        elif step.action is Action.CREATE:
            self._create(step.full_object)
        elif self._array:
            self._host.run("mdadm", "--assemble", "--uuid=%s" % self._array.uuid, device_of(step.key))
        self._settle()

    def _create(self, array: Object) -> None:
        name, disks = array["name"], [_real(path) for path in array["disks"]]
        command = ["mdadm", "--create", device_of(name), "--level=%s" % array["level"], "--metadata=1.2"]
        # Any host assembles the array under its name, as does an initial file system without a host name.
        command += ["--name=%s" % name, "--homehost=any", "--bitmap=internal", "--raid-devices=%d" % len(disks)]
        if self._chunk:
            command.append("--chunk=%d" % self._chunk)
        self._host.run(*command, *disks)

    def _settle(self) -> None:
        """Wait until udev has created the links of the devices."""
        try:
            self._host.run("udevadm", "settle", "--timeout=30")
        except CommandError as error:
            raise UserError(
                "Cannot find the links of the devices: udev did not create them: %s. Run the task again." % error.reason
            ) from None


def _real(path: str) -> str:
    return str(Path(path).resolve())
