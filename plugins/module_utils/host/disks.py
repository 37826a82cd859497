# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on a disk, and whether anything may be written to it."""

from __future__ import annotations

import json
import os
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ..reconcile import SentenceError
from .commands import CommandError, Host

_EDGE = 1 << 20  # bytes at both ends of a disk that are looked at: whatever is laid out has something there
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
    """What a tool would know the content of a disk by."""

    type: str
    label: str = ""

    def __str__(self) -> str:
        what = _KINDS.get(self.type, "%s %s file system" % (_article(self.type), self.type))
        return "%s named '%s'" % (what, self.label) if self.label else what


@dataclass(frozen=True)
class Disk:
    """A disk as it is. ``mounts`` are those of itself and of all that is on it, ``parts`` its partitions, ``holders``
    what else stands on it, like an array or a volume; ``md`` is what its superblock of an md array says."""

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
    def in_the_way(self) -> str:
        """Why nothing may be written to it, and what to do, after the disk's name and a colon; empty when it may."""
        if self.type != "disk":
            return "no whole disk but a %s (name the disk itself)" % self.type
        if self.mounts:
            return "in use at %s (unmount that first, or leave it out)" % ", ".join(self.mounts)
        if self.holders:
            # Its md array may have been assembled by udev, without anybody having asked for it.
            what = "the md array named '%s'" % self.md["MD_NAME"] if "MD_NAME" in self.md else "that"
            return "in use by %s (take %s apart first, or leave it out)" % (", ".join(self.holders), what)
        found = list(map(str, self.signatures))
        if self.parts:
            found.append("the partitions %s" % ", ".join(self.parts))
        if found or not self.blank:
            what = " and ".join(dict.fromkeys(found)) or "data of a kind that nobody here knows"
            return "%s (save what is needed and empty it with blkdiscard --force, or leave it out)" % what
        return "read-only (look why, or leave it out)" if self.read_only else ""


def _article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiox" else "a"


def look(host: Host, path: str) -> Disk:
    """What is on a disk. Raises SentenceError when there is none."""
    real = str(Path(path).resolve())
    columns = "NAME,TYPE,RO,MOUNTPOINTS"  # with the name it is a tree: what is on the disk stands below it
    try:
        listed = json.loads(host.run("lsblk", "--json", "--paths", "--output", columns, real))
    except CommandError:
        raise SentenceError("There is no disk %s on this host: lsblk lists those that are." % path) from None
    tree = listed["blockdevices"][0]
    below = list(_below(tree))
    return Disk(
        path=path,
        type=tree["type"],
        read_only=bool(tree["ro"]),
        mounts=tuple(where for node in (tree, *below) for where in node["mountpoints"] if where),
        parts=tuple(node["name"] for node in below if node["type"] == "part"),
        holders=tuple(node["name"] for node in below if node["type"] != "part"),
        signatures=_signatures(host, real),
        blank=_blank(real),
        md=_superblock(host, real),
    )


def _below(tree: dict[str, t.Any]) -> t.Iterator[dict[str, t.Any]]:
    for child in tree.get("children", ()):
        yield child
        yield from _below(child)


def _signatures(host: Host, path: str) -> tuple[Signature, ...]:
    """From the disk itself, and not from what udev has remembered of it."""
    told = host.run("wipefs", "--no-act", "--json", "--output", "TYPE,LABEL", path)
    found = json.loads(told)["signatures"] if told.strip() else []
    return tuple(Signature(item["type"], item.get("label") or "") for item in found)


def _blank(path: str) -> bool:
    """Whether both ends are zeros."""
    try:
        with Path(path).open("rb") as disk:
            size = disk.seek(0, os.SEEK_END)
            for start in (0, max(0, size - _EDGE)):
                disk.seek(start)
                if any(disk.read(_EDGE)):
                    return False
    except OSError as error:
        raise SentenceError("Cannot read %s: %s. Run this as root." % (path, error.strerror)) from None
    return True


def _superblock(host: Host, path: str) -> dict[str, str]:
    """What ``mdadm --examine`` says, like MD_UUID and MD_NAME; nothing for a disk in no array."""
    try:
        told = host.run("mdadm", "--examine", "--export", path)
    except CommandError:
        return {}
    pairs = (line.partition("=") for line in told.splitlines())
    return {name: value for name, sep, value in pairs if sep and name.startswith("MD_")}


def nvme(host: Host) -> list[str]:
    """All NVMe disks of the host, sorted."""
    listed = json.loads(host.run("lsblk", "--json", "--paths", "--nodeps", "--output", "PATH,TYPE,TRAN"))
    return sorted(item["path"] for item in listed["blockdevices"] if item["tran"] == "nvme" and item["type"] == "disk")
