# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An md array with a file system: what is there, what is in its way, and how it is made. Nothing is ever wiped."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

from ..reconcile import Action, Failure, Family, Field, ItemError, Mode, Object, SentenceError, Step
from .commands import CommandError, Host
from .disks import Disk, look

FILE_SYSTEM = "xfs"
LABEL_LENGTH = 12  # that xfs has room for

ARRAY = Family("array", (Field("level"), Field("disks", Mode.SET), Field("active")), key="name")
FILESYSTEM = Family("filesystem", (Field("type"), Field("label", Mode.WRITE_ONLY)), key="device")


@dataclass(frozen=True)
class Found:
    """An array that is there: its ``device`` is empty while it is not assembled, and ``missing`` counts the members
    that it has lost; ``strangers`` are wanted disks that are not in it."""

    uuid: str
    level: str
    members: tuple[str, ...]
    strangers: tuple[str, ...]
    device: str = ""
    missing: int = 0

    def told(self, name: str) -> Object:
        """As the engine compares it."""
        return {"name": name, "level": self.level, "disks": list(self.members), "active": bool(self.device)}


def device_of(name: str) -> str:
    """The path by which an array is known, whatever number it has."""
    return "/dev/md/%s" % name


def find(host: Host, name: str, level: str, paths: t.Sequence[str]) -> Found | None:
    """The array of that name on those disks, or None when all of them are free for it.

    Raises SentenceError when a disk holds anything else, or when the array is another one than is wanted.
    """
    disks = [look(host, path) for path in paths]
    members = [disk for disk in disks if _name(disk) == name]
    others = [disk for disk in disks if disk not in members]
    _refuse_what_holds_data(name, others)
    if not members:
        _see_that_the_name_is_free(name)
        return None
    found = _found(members, others)
    _compare(name, level, found)
    return found


def _refuse_what_holds_data(name: str, disks: list[Disk]) -> None:
    blocked: dict[str, list[str]] = {}
    for disk in disks:
        if disk.in_the_way:
            blocked.setdefault(disk.in_the_way, []).append(disk.path)
    if blocked:
        told = "; ".join("%s: %s" % (", ".join(paths), why) for why, paths in blocked.items())
        raise SentenceError("Array '%s' takes empty disks only, and none was touched. %s." % (name, told))


def _name(disk: Disk) -> str:
    """Without the host that made it, which stands before a colon."""
    return disk.md.get("MD_NAME", "").rpartition(":")[2]


def _see_that_the_name_is_free(name: str) -> None:
    if Path(device_of(name)).exists():
        raise SentenceError(
            "Array '%s' is there already, on other disks than these: name its disks, or another array." % name
        )


def _found(members: list[Disk], others: list[Disk]) -> Found:
    uuids = {disk.md.get("MD_UUID", "") for disk in members}
    if len(uuids) > 1:
        told = ", ".join(disk.path for disk in members)
        raise SentenceError("Disks %s are of different arrays of the same name: leave out those of one." % told)
    device = min((holder for disk in members for holder in disk.holders if holder.startswith("/dev/md")), default="")
    # One that was taken out of an array that runs still says that it is of it.
    inside = [disk for disk in members if not device or device in disk.holders]
    if device and not runs(device):
        device = ""
    return Found(
        uuid=uuids.pop(),
        level=members[0].md.get("MD_LEVEL", ""),
        members=tuple(disk.path for disk in inside),
        strangers=tuple(disk.path for disk in [*others, *members] if disk not in inside),
        device=device,
        missing=int(members[0].md.get("MD_DEVICES", "0")) - len(inside),
    )


def runs(device: str) -> bool:
    """Whether an array can be read: one that waits for more disks has a device too, of no size."""
    state = Path("/sys/class/block", Path(device).name, "md", "array_state")
    return state.read_text().strip() not in ("inactive", "clear")


def _compare(name: str, level: str, found: Found) -> None:
    """Only what can be had without losing data may be asked of an array that is there."""
    if found.level != level:
        raise SentenceError(
            "Array '%s' is there as %s and not as %s: ask for what it is, or save its data and take it apart first."
            % (name, found.level, level)
        )
    if found.missing > 0 and not found.device:
        raise SentenceError(
            "Array '%s' lacks %d of its disks and does not run: find them, or start it without with mdadm --run."
            % (name, found.missing)
        )


def warnings(name: str, found: Found) -> list[str]:
    """What of an array that is there somebody should look at."""
    told = []
    if found.missing > 0:
        told.append("Array '%s' lacks %d of its disks: it runs, with less or no redundancy." % (name, found.missing))
    if found.strangers:
        told.append(
            "Array '%s' does not have %s: mdadm --manage %s --add takes an empty disk in."
            % (name, ", ".join(found.strangers), device_of(name))
        )
    return told


def file_system(host: Host, device: str, name: str) -> Object | None:
    """The file system of an array that runs, or None when it has none yet. Raises SentenceError for anything else."""
    disk = look(host, device)
    if FILE_SYSTEM in [item.type for item in disk.signatures]:
        return {"device": device_of(name), "type": FILE_SYSTEM}
    if disk.parts or disk.holders or disk.signatures or not disk.blank:
        what = " and ".join(map(str, disk.signatures)) or ", ".join(disk.parts + disk.holders) or "unknown data"
        raise SentenceError(
            "Array '%s' holds %s and no %s file system: nothing was touched. Save what is needed and empty it with "
            "wipefs --all %s, or name another array." % (name, what, FILE_SYSTEM, device_of(name))
        )
    return None


class Writer:
    """Makes arrays and file systems; whatever mdadm or mkfs would have to be forced to do, they are not asked for."""

    def __init__(self, host: Host, found: Found | None, chunk: int | None) -> None:
        self._host, self._found, self._chunk = host, found, chunk

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        errors: list[ItemError] = []
        for step in steps:
            if errors:
                errors.append(ItemError.of(step, "It was not tried.", Failure.NOT_TRIED))
                continue
            try:
                self._carry_out(step)
            except SentenceError as error:
                sentence = "Cannot make %s '%s': %s." % (step.family.kind, step.key, error.sentence.rstrip("."))
                errors.append(ItemError.of(step, sentence))
        return errors

    def _carry_out(self, step: Step) -> None:
        if step.family is FILESYSTEM:
            self._host.run("mkfs.xfs", "-q", "-L", step.whole["label"], _real(step.key))
        elif step.action is Action.CREATE:
            self._create(step.whole)
        elif self._found:
            self._host.run("mdadm", "--assemble", "--uuid=%s" % self._found.uuid, device_of(step.key))
        self._settle()

    def _create(self, array: Object) -> None:
        name, disks = array["name"], [_real(path) for path in array["disks"]]
        command = ["mdadm", "--create", device_of(name), "--level=%s" % array["level"], "--metadata=1.2"]
        # Known by its name on whatever host it is, also to an initial file system that knows no host's name.
        command += ["--name=%s" % name, "--homehost=any", "--bitmap=internal", "--raid-devices=%d" % len(disks)]
        if self._chunk:
            command.append("--chunk=%d" % self._chunk)
        self._host.run(*command, *disks)

    def _settle(self) -> None:
        """Until udev has made the links that everybody goes by."""
        try:
            self._host.run("udevadm", "settle", "--timeout=30")
        except CommandError as error:
            raise SentenceError("udev does not come to rest: %s" % error.words) from None


def _real(path: str) -> str:
    return str(Path(path).resolve())
