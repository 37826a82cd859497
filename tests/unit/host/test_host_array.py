# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in the way of an array, in sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.host import array_task, arrays
from ansible_collections.openipu.pod.plugins.module_utils.host.disks import Disk, Signature
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import SentenceError

EMPTY = Disk("/dev/nvme0n1")
SAVE = "(save what is needed and empty it with blkdiscard --force, or leave it out)"
GPT = (Signature("PMBR"), Signature("gpt"), Signature("gpt"))
MD = {"MD_LEVEL": "raid6", "MD_DEVICES": "4", "MD_NAME": "any:nvme", "MD_UUID": "9a1e890b:c8666bee"}


@pytest.mark.parametrize(
    ("disk", "why"),
    [
        (EMPTY, ""),
        (replace(EMPTY, type="part"), "no whole disk but a part (name the disk itself)"),
        (replace(EMPTY, mounts=("/srv",)), "in use at /srv (unmount that first, or leave it out)"),
        (replace(EMPTY, mounts=("[SWAP]",)), "in use at [SWAP] (unmount that first, or leave it out)"),
        (replace(EMPTY, holders=("/dev/md127",)), "in use by /dev/md127 (take that apart first, or leave it out)"),
        (
            replace(EMPTY, holders=("/dev/md127",), md=MD),
            "in use by /dev/md127 (take the md array named 'any:nvme' apart first, or leave it out)",
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
        (replace(EMPTY, blank=False), f"data of a kind that nobody here knows {SAVE}"),
        (replace(EMPTY, read_only=True), "read-only (look why, or leave it out)"),
    ],
)
def test_what_is_in_the_way(disk: Disk, why: str) -> None:
    assert disk.in_the_way == why


def find(monkeypatch: pytest.MonkeyPatch, *disks: Disk, level: str = "raid6", runs: bool = True) -> arrays.Found | None:
    """With disks that are as they are told here; the scenario poplar_server has real ones."""
    known = {disk.path: disk for disk in disks}
    monkeypatch.setattr(arrays, "look", lambda host, path: known[path])
    monkeypatch.setattr(arrays, "runs", lambda device: runs)
    return arrays.find(None, "nvme", level, list(known))  # type: ignore[arg-type]  # nobody is asked


def members(count: int, holders: tuple[str, ...] = ("/dev/md127",)) -> list[Disk]:
    superblock = (Signature("linux_raid_member", "any:nvme"),)
    return [Disk(f"/dev/nvme{n}n1", signatures=superblock, holders=holders, blank=False, md=MD) for n in range(count)]


def test_disks_with_the_same_in_their_way_are_named_together(monkeypatch: pytest.MonkeyPatch) -> None:
    full = replace(EMPTY, path="/dev/nvme9n1", signatures=(Signature("xfs"),))
    held = [replace(EMPTY, path=f"/dev/nvme{n}n1", holders=("/dev/md1",)) for n in (2, 3)]
    with pytest.raises(SentenceError) as error:
        find(monkeypatch, EMPTY, *held, full)
    assert error.value.sentence == (
        "Array 'nvme' takes empty disks only, and none was touched. /dev/nvme2n1, /dev/nvme3n1: in use by /dev/md1 "
        f"(take that apart first, or leave it out); /dev/nvme9n1: an xfs file system {SAVE}."
    )


def test_an_array_is_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = find(monkeypatch, *members(4))
    assert found
    assert found.told("nvme") == {
        "name": "nvme",
        "level": "raid6",
        "disks": [f"/dev/nvme{n}n1" for n in range(4)],
        "active": True,
    }
    assert arrays.warnings("nvme", found) == []
    stopped = find(monkeypatch, *members(4, holders=()))
    assert stopped
    assert stopped.told("nvme")["active"] is False


def test_an_array_that_waits_for_more_disks_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SentenceError, match=r"^Array 'nvme' lacks 2 of its disks and does not run: find them"):
        find(monkeypatch, *members(2), runs=False)


def test_a_disk_that_was_taken_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    four = members(4)
    found = find(monkeypatch, *four[:3], replace(four[3], holders=()))
    assert found
    assert found.missing == 1
    lacks, out = arrays.warnings("nvme", found)
    assert lacks == "Array 'nvme' lacks 1 of its disks: it runs, with less or no redundancy."
    assert out == "Array 'nvme' does not have /dev/nvme3n1: mdadm --manage /dev/md/nvme --add takes an empty disk in."


def test_an_array_is_not_made_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SentenceError, match="is there as raid6 and not as raid5"):
        find(monkeypatch, *members(4), level="raid5")
    with pytest.raises(SentenceError, match="lacks 1 of its disks and does not run"):
        find(monkeypatch, *members(3, holders=()))
    other = replace(members(4)[3], md={**MD, "MD_UUID": "another"})
    with pytest.raises(SentenceError, match="are of different arrays of the same name"):
        find(monkeypatch, *members(3), other)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            {"disks": ["/dev/a"], "count": 7},
            "Array 'nvme' wants 7 disks and the option disks has 1 (/dev/a): "
            "name those that it may have in disks, or set count.",
        ),
        (
            {"disks": ["/dev/a", "/dev/b", "/dev/c"]},
            "Array 'nvme' has 3 disks and raid6 needs 4: name more, or another level.",
        ),
        ({"disks": ["/dev/a", "/dev/a"]}, "Disk /dev/a stands twice in disks: leave one out."),
        (
            {"name": "much too long"},
            "'much too long' cannot be the name of an array: it may have up to 12 letters, digits, '-' and '_'.",
        ),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, Any], sentence: str) -> None:
    told = {"name": "nvme", "level": "raid6", "disks": [], "count": None, "chunk": None, **more}
    result = array_task.POPLAR_ARRAY.perform(told, check_mode=True, diff=False)
    assert (result["failed"], result["msg"]) == (True, sentence)
