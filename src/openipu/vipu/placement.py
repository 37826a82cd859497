# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a partition goes: pure functions on bit masks of used IPUs, one byte per IPU-Machine.

Byte strings, because searching them costs next to nothing: an allocation of 1024 machines is looked
through in some microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from openipu.vipu.model import IPUS_PER_MACHINE, PlacedIpu

FULL = (1 << IPUS_PER_MACHINE) - 1
_WALL = b"\x01"
# used IPUs of a machine -> wall as soon as one is used, or as they are outside of the allocation
_WHOLE_MACHINES = bytes(min(mask, 1) for mask in range(256))


class Room(NamedTuple):
    """Consecutive IPU-Machines: the used IPUs of each (bit i for IPU i), and where in the cluster they begin."""

    occupied: bytearray
    first: int  # position in the cluster of the machine at index 0
    per_ild: int  # machines in one IPU-Link domain


class Block(NamedTuple):
    """A place for a partition: the same IPUs in consecutive IPU-Link domains."""

    ild: int  # the first one
    segments: int  # how many
    machine: int  # position in the domain of the lowest machine
    machines: int
    ipu: int  # the first IPU on each machine
    ipus: int  # how many on each machine
    cut: int  # IPUs of the free block that this one is cut from: the smallest is the best fit

    def placed(self) -> tuple[PlacedIpu, ...]:
        """Its IPUs by segment and routing id.

        Routing ids count up with the machine and down with the IPU on it, as public listings show:
        id 0 is the highest IPU of the lowest machine.
        """
        topology_ids = [
            IPUS_PER_MACHINE * machine + ipu
            for machine in range(self.machine, self.machine + self.machines)
            for ipu in range(self.ipu + self.ipus - 1, self.ipu - 1, -1)
        ]
        return tuple(
            PlacedIpu(self.ild + segment, segment, topology_id, routing_id)
            for segment in range(self.segments)
            for routing_id, topology_id in enumerate(topology_ids)
        )

    def positions(self, per_ild: int) -> Iterator[int]:
        """The positions in the cluster of its machines."""
        for ild in range(self.ild, self.ild + self.segments):
            first = ild * per_ild + self.machine
            yield from range(first, first + self.machines)


def segments_for(size: int, per_ild: int) -> int:
    """IPU-Link domains that a partition of this power of two of IPUs needs at least."""
    segments = 1
    while size > segments * per_ild * IPUS_PER_MACHINE:
        segments *= 2
    return segments


def place(room: Room, size: int, segments: int = 1) -> Block | None:
    """The best place for a power of two of IPUs, or None when no fitting block is free.

    Below four IPUs: an aligned block of the machine that is broken up most. From four up: whole
    machines inside one IPU-Link domain, at the lower end of the smallest free run that fits, so that
    the largest one stays as large as it can be. With several segments (each of whole machines): the
    same positions in that many consecutive domains, at that end of a common free run that leaves the
    largest run free.
    """
    if size < IPUS_PER_MACHINE:
        return _place_in_machine(room, size)
    machines = size // IPUS_PER_MACHINE // segments
    if segments == 1:
        return _place_in_domain(room, machines)
    return _place_across_domains(room, machines, segments)


def count_fits(room: Room, size: int, segments: int = 1) -> int:
    """How many partitions of this size find a place, one after the other."""
    if size < IPUS_PER_MACHINE:
        return sum(room.occupied.count(mask) * count for mask, count in _BLOCKS_FREE[size])
    machines = size // IPUS_PER_MACHINE // segments
    if segments == 1:
        return sum(run // machines for run in free_runs(room))
    left, count = room._replace(occupied=room.occupied[:]), 0
    while block := place(left, size, segments):
        for position in block.positions(left.per_ild):
            left.occupied[position - left.first] = FULL
        count += 1
    return count


def free_runs(room: Room) -> list[int]:
    """The lengths of all runs of wholly free machines, cut at the borders of IPU-Link domains."""
    return [len(run) for run in _walled(room).split(_WALL) if run]


def free_ipus(room: Room) -> int:
    """Free IPUs, wherever they are."""
    return sum(room.occupied.count(mask) * (IPUS_PER_MACHINE - mask.bit_count()) for mask in range(FULL))


def largest_block(room: Room) -> int:
    """The size of the largest partition that finds a place, 0 when not even one IPU does."""
    runs = free_runs(room)
    if not runs:
        return next((size for size in (2, 1) if count_fits(room, size)), 0)
    largest = IPUS_PER_MACHINE << (max(runs).bit_length() - 1)
    # Only what exceeds a domain goes across domains unasked.
    size = IPUS_PER_MACHINE << (room.per_ild.bit_length() - 1)
    domains = [int.from_bytes(domain) for domain in _domains(room)]
    while (size := size * 2) <= len(room.occupied) * IPUS_PER_MACHINE:
        segments = segments_for(size, room.per_ild)
        fitting = bytes(size // segments // IPUS_PER_MACHINE)
        if any(fitting in common.to_bytes(room.per_ild) for common in _common(domains, segments)):
            largest = size
    return largest


def _place_in_machine(room: Room, size: int) -> Block | None:
    for mask, ipu, cut in _BROKEN[size]:
        index = room.occupied.find(mask)
        if index >= 0:
            ild, machine = divmod(room.first + index, room.per_ild)
            return Block(ild, 1, machine, 1, ipu, size, cut)
    whole = _place_in_domain(room, 1)
    return whole and whole._replace(ipus=size)


def _place_in_domain(room: Room, machines: int) -> Block | None:
    walled = _walled(room)
    lengths = [length for length in set(map(len, walled.split(_WALL))) if length >= machines]
    if not lengths:
        return None
    run = min(lengths)
    index = (_WALL + walled + _WALL).find(_WALL + bytes(run) + _WALL)
    ild, machine = divmod(index, room.per_ild + 1)
    return Block(
        room.first // room.per_ild + ild, 1, machine, machines, 0, IPUS_PER_MACHINE, cut=run * IPUS_PER_MACHINE
    )


def _place_across_domains(room: Room, machines: int, segments: int) -> Block | None:
    domains = _domains(room)
    longest = [_longest(domain) for domain in domains]
    best: tuple[int, int, int, int] | None = None
    for ild, common in enumerate(_common([int.from_bytes(domain) for domain in domains], segments)):
        taken = range(ild, ild + segments)
        elsewhere = max(longest[:ild] + longest[ild + segments :], default=0)
        for start, run in _runs(common.to_bytes(room.per_ild)):
            # Between the ends of a common run no place leaves more free than the better end does.
            for machine in {start, start + run - machines} if run >= machines else ():
                left = elsewhere
                if left < max(longest[ild : ild + segments]):
                    left = max(left, *(_longest_without(domains[i], machine, machines) for i in taken))
                candidate = (-left, run, ild, machine)
                if best is None or candidate < best:
                    best = candidate
    if best is None:
        return None
    _, run, ild, machine = best
    cut = run * segments * IPUS_PER_MACHINE
    return Block(room.first // room.per_ild + ild, segments, machine, machines, 0, IPUS_PER_MACHINE, cut)


def _common(domains: list[int], segments: int) -> list[int]:
    """The walls of every ``segments`` (a power of two) consecutive domains together, by the first of them."""
    width = 1
    while width < segments:
        domains = [domain | other for domain, other in zip(domains, domains[width:], strict=False)]
        width *= 2
    return domains


def _longest(walls: bytes) -> int:
    """The length of the longest free run."""
    return max(map(len, walls.split(_WALL)))


def _longest_without(walls: bytes, machine: int, machines: int) -> int:
    """The same once these machines are taken."""
    return _longest(walls[:machine] + _WALL * machines + walls[machine + machines :])


def _domains(room: Room) -> list[bytes]:
    """Per IPU-Link domain that the room touches: a wall for every machine that is not wholly free and in it."""
    before = room.first % room.per_ild
    after = -(before + len(room.occupied)) % room.per_ild
    flat = _WALL * before + room.occupied.translate(_WHOLE_MACHINES) + _WALL * after
    return [flat[index : index + room.per_ild] for index in range(0, len(flat), room.per_ild)]


def _walled(room: Room) -> bytes:
    """The domains with a wall between each two: index // (machines per domain + 1) is the domain."""
    return _WALL.join(_domains(room))


def _runs(walls: bytes) -> Iterator[tuple[int, int]]:
    """Start and length of every free run."""
    start = 0
    for run in walls.split(_WALL):
        if run:
            yield start, len(run)
        start += len(run) + 1


def _free_blocks(mask: int, size: int) -> list[int]:
    """The first IPU of every free aligned block of a machine with these used IPUs."""
    block = (1 << size) - 1
    return [ipu for ipu in range(0, IPUS_PER_MACHINE, size) if not mask & block << ipu]


def _smallest_free_block(mask: int, ipu: int) -> int:
    """The size of the free aligned block around a free IPU."""
    for size in (IPUS_PER_MACHINE, 2):
        if ipu // size * size in _free_blocks(mask, size):
            return size
    return 1


def _broken(size: int) -> tuple[tuple[int, int, int], ...]:
    """(used IPUs, first IPU to take, IPUs of the block that it is cut from), the best fit first."""
    options = []
    for mask in range(1, FULL):
        cuts = [(_smallest_free_block(mask, ipu), ipu) for ipu in _free_blocks(mask, size)]
        if cuts:
            cut, ipu = min(cuts)
            options.append((cut, mask.bit_count() * -1, mask, ipu))
    return tuple((mask, ipu, cut) for cut, _, mask, ipu in sorted(options))


_BROKEN = {size: _broken(size) for size in (1, 2)}
_BLOCKS_FREE = {size: tuple((mask, len(_free_blocks(mask, size))) for mask in range(FULL)) for size in (1, 2)}
