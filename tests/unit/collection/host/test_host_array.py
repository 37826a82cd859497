# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of poplar_array: obstacles to an array, and their messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.host import array_task, arrays
from ansible_collections.openipu.pod.plugins.module_utils.host.disks import Disk, Signature
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError

EMPTY = Disk("/dev/nvme0n1")
SAVE = "(save its data and empty it with blkdiscard --force, or omit the disk)"
GPT = (Signature("PMBR"), Signature("gpt"), Signature("gpt"))
MD = {"MD_LEVEL": "raid6", "MD_DEVICES": "4", "MD_NAME": "any:nvme", "MD_UUID": "9a1e890b:c8666bee"}


@pytest.mark.parametrize(
    ("disk", "obstacle"),
    [
        (EMPTY, ""),
        (replace(EMPTY, type="part"), "not a whole disk but of type 'part' (use the whole disk)"),
        (replace(EMPTY, mounts=("/srv",)), "in use at /srv (unmount it first, or omit the disk)"),
        (replace(EMPTY, mounts=("[SWAP]",)), "in use at [SWAP] (unmount it first, or omit the disk)"),
        (replace(EMPTY, holders=("/dev/md127",)), "in use by /dev/md127 (remove it first, or omit the disk)"),
        (
            replace(EMPTY, holders=("/dev/md127",), md=MD),
            "in use by /dev/md127 (remove the md array named 'any:nvme' first, or omit the disk)",
        ),
        (
            replace(EMPTY, signatures=GPT, parts=("/dev/nvme0n1p1",)),
            f"a partition table (gpt) and the partitions /dev/nvme0n1p1 {SAVE}",
        ),
        (replace(EMPTY, signatures=(Signature("ext4", "old"),)), f"an ext4 file system named 'old' {SAVE}"),
        (replace(EMPTY, signatures=(Signature("btrfs"),)), f"a btrfs file system {SAVE}"),
        (replace(EMPTY, signatures=(Signature("LVM2_member"),)), f"a physical volume of LVM {SAVE}"),
        (replace(EMPTY, signatures=(Signature("crypto_LUKS"),)), f"an encrypted volume {SAVE}"),
        (
            replace(EMPTY, signatures=(Signature("linux_raid_member", "a:b"),)),
            f"the superblock of an md array named 'a:b' {SAVE}",
        ),
        (replace(EMPTY, blank=False), f"unknown data {SAVE}"),
        (replace(EMPTY, read_only=True), "read-only (find the cause, or omit the disk)"),
    ],
)
def test_obstacles_of_disks(disk: Disk, obstacle: str) -> None:
    assert disk.obstacle == obstacle


def find(
    monkeypatch: pytest.MonkeyPatch, *disks: Disk, level: str = "raid6", active: bool = True
) -> arrays.ExistingArray | None:
    """Find an array on simulated disks. The Molecule scenario poplar_server has real ones."""
    known = {disk.path: disk for disk in disks}
    monkeypatch.setattr(arrays, "inspect_disk", lambda host, path: known[path])
    monkeypatch.setattr(arrays, "is_active", lambda device: active)
    return arrays.find_array(None, "nvme", level, list(known))  # type: ignore[arg-type]  # the host is not used


def members(count: int, holders: tuple[str, ...] = ("/dev/md127",)) -> list[Disk]:
    superblock = (Signature("linux_raid_member", "any:nvme"),)
    return [Disk(f"/dev/nvme{n}n1", signatures=superblock, holders=holders, blank=False, md=MD) for n in range(count)]


def test_disks_with_the_same_obstacle_are_listed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    full = replace(EMPTY, path="/dev/nvme9n1", signatures=(Signature("xfs"),))
    held = [replace(EMPTY, path=f"/dev/nvme{n}n1", holders=("/dev/md1",)) for n in (2, 3)]
    with pytest.raises(UserError) as error:
        find(monkeypatch, EMPTY, *held, full)
    assert error.value.message == (
        "Cannot use some disks for array 'nvme': /dev/nvme2n1, /dev/nvme3n1: in use by /dev/md1 "
        f"(remove it first, or omit the disk); /dev/nvme9n1: an xfs file system {SAVE}. No disk was changed."
    )


def test_an_existing_array_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = find(monkeypatch, *members(4))
    assert found
    assert found.as_object("nvme") == {
        "name": "nvme",
        "level": "raid6",
        "disks": [f"/dev/nvme{n}n1" for n in range(4)],
        "active": True,
    }
    assert arrays.warnings("nvme", found) == []
    stopped = find(monkeypatch, *members(4, holders=()))
    assert stopped
    assert stopped.as_object("nvme")["active"] is False


def test_an_array_with_too_few_disks_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"^Cannot start array 'nvme': it lacks 2 of its disks\. Connect them"):
        find(monkeypatch, *members(2), active=False)


def test_a_removed_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    four = members(4)
    found = find(monkeypatch, *four[:3], replace(four[3], holders=()))
    assert found
    assert found.missing == 1
    lacks, out = arrays.warnings("nvme", found)
    assert lacks == "Array 'nvme' lacks 1 of its disks. It runs with less or no redundancy. Replace them."
    assert out == (
        "Array 'nvme' does not include /dev/nvme3n1. Add an empty disk with mdadm --manage /dev/md/nvme --add."
    )


def test_an_existing_array_is_not_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"^Cannot change the level of array 'nvme' from raid6 to raid5"):
        find(monkeypatch, *members(4), level="raid5")
    with pytest.raises(UserError, match=r"^Cannot start array 'nvme': it lacks 1 of its disks"):
        find(monkeypatch, *members(3, holders=()))
    other = replace(members(4)[3], md={**MD, "MD_UUID": "another"})
    with pytest.raises(UserError, match="they belong to different arrays of this name"):
        find(monkeypatch, *members(3), other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"disks": ["/dev/a"], "count": 7},
            "Cannot select 7 disks for array 'nvme': disks lists 1 (/dev/a). Set disks to its disks, or change count.",
        ),
        (
            {"disks": ["/dev/a", "/dev/b", "/dev/c"]},
            "Cannot use 3 disks for array 'nvme': raid6 needs at least 4. Add disks, or change level.",
        ),
        ({"disks": ["/dev/a", "/dev/a"]}, "Cannot use disk '/dev/a' twice. Remove one entry from disks."),
        (
            {"name": "much too long"},
            "Cannot use the array name 'much too long': names have 1 to 12 letters, digits, '-' and '_'. Change name.",
        ),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], message: str) -> None:
    params = {"name": "nvme", "level": "raid6", "disks": [], "count": None, "chunk": None, **options}
    result = array_task.POPLAR_ARRAY.perform(params, check_mode=True, diff=False)
    assert (result["failed"], result["msg"]) == (True, message)
