# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Content of disks, and obstacles to writing to them."""

from __future__ import annotations

import json
import os
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ..reconcile import UserError
from .commands import CommandError, Host

_EDGE = 1 << 20  # bytes that are read at both ends of a disk, where every layout has some data
_KINDS = {
    "linux_raid_member": "the superblock of an md array",
    "LVM2_member": "a physical volume of LVM",
    "crypto_LUKS": "an encrypted volume",
    "swap": "swap space",
    "zfs_member": "a part of a ZFS pool",
    "gpt": "a partition table (gpt)",
    "PMBR": "a partition table (gpt)",
    "dos": "a partition table (dos)",
}


@dataclass(frozen=True)
class Signature:
    """Signature that identifies the content of a disk; ``type`` is a type of wipefs."""

    type: str
    label: str = ""

    def __str__(self) -> str:
        content = _KINDS.get(self.type, "%s %s file system" % (_article(self.type), self.type))
        return "%s named '%s'" % (content, self.label) if self.label else content


@dataclass(frozen=True)
class Disk:
    """State of a disk.

    ``mounts`` are the mount points of the disk and of all devices on it. ``parts`` are its partitions, ``holders`` the
    other devices on it, such as arrays and volumes. ``md`` are the values of its md superblock.
    """

    path: str
    type: str = "disk"
    read_only: bool = False
    mounts: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    signatures: tuple[Signature, ...] = ()
    blank: bool = True
    md: dict[str, str] = field(default_factory=dict)

    @property
    def obstacle(self) -> str:
        """Cause and remedy if nothing may be written to the disk, as a clause for a message; empty otherwise."""
        if self.type != "disk":
            return "not a whole disk but of type '%s' (use the whole disk)" % self.type
        if self.mounts:
            return "in use at %s (unmount it first, or omit the disk)" % ", ".join(self.mounts)
        if self.holders:
            # Udev may have assembled the md array automatically, so the message names it.
            holder = "the md array named '%s'" % self.md["MD_NAME"] if "MD_NAME" in self.md else "it"
            return "in use by %s (remove %s first, or omit the disk)" % (", ".join(self.holders), holder)
        found = list(map(str, self.signatures))
        if self.parts:
            found.append("the partitions %s" % ", ".join(self.parts))
        if found or not self.blank:
            content = " and ".join(dict.fromkeys(found)) or "unknown data"
            return "%s (save its data and empty it with blkdiscard --force, or omit the disk)" % content
        return "read-only (find the cause, or omit the disk)" if self.read_only else ""


def _article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiox" else "a"


def inspect_disk(host: Host, path: str) -> Disk:
    """Return the state of a disk. Raises UserError when it does not exist."""
    real = str(Path(path).resolve())
    columns = "NAME,TYPE,RO,MOUNTPOINTS"  # with NAME, lsblk prints a tree with the devices on the disk
    try:
        listed = json.loads(host.run("lsblk", "--json", "--paths", "--output", columns, real))
    except CommandError:
        raise UserError("Cannot find disk '%s' on this host. Choose a disk that lsblk lists." % path) from None
    tree = listed["blockdevices"][0]
    below = list(_descendants(tree))
    return Disk(
        path=path,
        type=tree["type"],
        read_only=bool(tree["ro"]),
        mounts=tuple(point for node in (tree, *below) for point in node["mountpoints"] if point),
        parts=tuple(node["name"] for node in below if node["type"] == "part"),
        holders=tuple(node["name"] for node in below if node["type"] != "part"),
        signatures=_signatures(host, real),
        blank=_is_blank(real),
        md=_superblock(host, real),
    )


def _descendants(tree: dict[str, t.Any]) -> t.Iterator[dict[str, t.Any]]:
    for child in tree.get("children", ()):
        yield child
        yield from _descendants(child)


def _signatures(host: Host, path: str) -> tuple[Signature, ...]:
    """Return the signatures on the disk itself, not those in udev's database."""
    output = host.run("wipefs", "--no-act", "--json", "--output", "TYPE,LABEL", path)
    found = json.loads(output)["signatures"] if output.strip() else []
    return tuple(Signature(item["type"], item.get("label") or "") for item in found)


def _is_blank(path: str) -> bool:
    """Return whether both ends are zeros."""
    try:
        with Path(path).open("rb") as disk:
            size = disk.seek(0, os.SEEK_END)
            for start in (0, max(0, size - _EDGE)):
                disk.seek(start)
                if any(disk.read(_EDGE)):
                    return False
    except OSError as error:
        raise UserError("Cannot read disk '%s': %s. Run the task as root." % (path, error.strerror)) from None
    return True


def _superblock(host: Host, path: str) -> dict[str, str]:
    """Return the values of ``mdadm --examine``, like MD_UUID and MD_NAME; empty for a disk of no array."""
    try:
        output = host.run("mdadm", "--examine", "--export", path)
    except CommandError:
        return {}
    pairs = (line.partition("=") for line in output.splitlines())
    return {name: value for name, sep, value in pairs if sep and name.startswith("MD_")}


def nvme_disks(host: Host) -> list[str]:
    """Return the paths of all NVMe disks of the host, sorted."""
    listed = json.loads(host.run("lsblk", "--json", "--paths", "--nodeps", "--output", "PATH,TYPE,TRAN"))
    return sorted(item["path"] for item in listed["blockdevices"] if item["tran"] == "nvme" and item["type"] == "disk")
