# SPDX-License-Identifier: GPL-3.0-or-later
"""Placement of partitions: pure functions on bit masks of used IPUs, one byte per IPU-Machine.

Masks are byte strings, because these are fast to search: an allocation of 1024 machines takes a few
microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from openipu.vipu.domain.model import IPUS_PER_MACHINE, PlacedIpu

FULL = (1 << IPUS_PER_MACHINE) - 1
# Searches for whole machines use one byte per machine: 0 for a free machine, 1 for a blocked one. A machine is
# blocked when any of its IPUs is used, or when it is outside of the allocation.
_BLOCKED = b"\x01"
_BLOCKED_IF_USED = bytes(min(mask, 1) for mask in range(256))  # for bytes.translate


class Occupancy(NamedTuple):
    """Used IPUs of consecutive IPU-Machines."""

    occupied: bytearray  # mask of each machine: bit i for IPU i
    first: int  # position in the cluster of the machine at index 0
    per_ild: int  # machines in one IPU-Link domain


class Block(NamedTuple):
    """Place for a partition: the same IPUs in consecutive IPU-Link domains."""

    ild: int  # the first domain
    segments: int  # number of domains
    machine: int  # position in the domain of the lowest machine
    machines: int
    ipu: int  # the first IPU on each machine
    ipus: int  # number of IPUs on each machine
    cut: int  # IPUs of the free block that contains this one: the smallest is the best fit

    def placed(self) -> tuple[PlacedIpu, ...]:
        """Return its IPUs by segment and routing id.

        Routing ids increase with the machine and decrease with the IPU on it, as in public listings.
        So id 0 is the highest IPU of the lowest machine.
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
        """Yield the positions of its machines in the cluster."""
        for ild in range(self.ild, self.ild + self.segments):
            first = ild * per_ild + self.machine
            yield from range(first, first + self.machines)


def segments_for(size: int, per_ild: int) -> int:
    """Return the minimum number of IPU-Link domains for a partition of ``size`` IPUs, a power of two."""
    segments = 1
    while size > segments * per_ild * IPUS_PER_MACHINE:
        segments *= 2
    return segments


def place(occupancy: Occupancy, size: int, segments: int = 1) -> Block | None:
    """Return the best place for ``size`` IPUs, a power of two, or None when no fitting block is free.

    Below four IPUs: an aligned block of the most fragmented machine. From four IPUs: whole machines
    inside one IPU-Link domain, at the lower end of the smallest free run that fits. This keeps the
    largest run as large as possible. With several segments (each of whole machines): the same positions
    in consecutive domains. They are at the end of a common free run that leaves the largest run free.
    """
    if size < IPUS_PER_MACHINE:
        return _place_in_machine(occupancy, size)
    machines = size // IPUS_PER_MACHINE // segments
    if segments == 1:
        return _place_in_domain(occupancy, machines)
    return _place_across_domains(occupancy, machines, segments)


def count_fits(occupancy: Occupancy, size: int, segments: int = 1) -> int:
    """Return the number of partitions of this size that fit, placed one after the other."""
    if size < IPUS_PER_MACHINE:
        return sum(occupancy.occupied.count(mask) * count for mask, count in _numbers_of_free_blocks(size))
    machines = size // IPUS_PER_MACHINE // segments
    if segments == 1:
        return sum(run // machines for run in free_runs(occupancy))
    left, count = occupancy._replace(occupied=occupancy.occupied[:]), 0
    while block := place(left, size, segments):
        for position in block.positions(left.per_ild):
            left.occupied[position - left.first] = FULL
        count += 1
    return count


def free_runs(occupancy: Occupancy) -> list[int]:
    """Return the lengths of all runs of entirely free machines, split at the boundaries of IPU-Link domains."""
    return [len(run) for run in _with_boundaries(occupancy).split(_BLOCKED) if run]


def free_ipus(occupancy: Occupancy) -> int:
    """Return the number of free IPUs on all machines."""
    return sum(occupancy.occupied.count(mask) * (IPUS_PER_MACHINE - mask.bit_count()) for mask in range(FULL))


def largest_block(occupancy: Occupancy) -> int:
    """Return the size of the largest partition that fits, 0 when no IPU is free."""
    runs = free_runs(occupancy)
    if not runs:
        return next((size for size in (2, 1) if count_fits(occupancy, size)), 0)
    largest = IPUS_PER_MACHINE << (max(runs).bit_length() - 1)
    # By default, only a partition that is larger than a domain spans several.
    size = IPUS_PER_MACHINE << (occupancy.per_ild.bit_length() - 1)
    domains = [int.from_bytes(domain) for domain in _domains(occupancy)]
    while (size := size * 2) <= len(occupancy.occupied) * IPUS_PER_MACHINE:
        segments = segments_for(size, occupancy.per_ild)
        fitting = bytes(size // segments // IPUS_PER_MACHINE)
        if any(fitting in blocked.to_bytes(occupancy.per_ild) for blocked in _combined(domains, segments)):
            largest = size
    return largest


def _place_in_machine(occupancy: Occupancy, size: int) -> Block | None:
    for mask, ipu, cut in _choices_in_used_machine(size):
        index = occupancy.occupied.find(mask)
        if index >= 0:
            ild, machine = divmod(occupancy.first + index, occupancy.per_ild)
            return Block(ild, 1, machine, 1, ipu, size, cut)
    whole = _place_in_domain(occupancy, 1)
    return whole and whole._replace(ipus=size)


def _place_in_domain(occupancy: Occupancy, machines: int) -> Block | None:
    blocked = _with_boundaries(occupancy)
    lengths = [length for length in set(map(len, blocked.split(_BLOCKED))) if length >= machines]
    if not lengths:
        return None
    run = min(lengths)
    index = (_BLOCKED + blocked + _BLOCKED).find(_BLOCKED + bytes(run) + _BLOCKED)
    ild, machine = divmod(index, occupancy.per_ild + 1)
    return Block(
        occupancy.first // occupancy.per_ild + ild,
        1,
        machine,
        machines,
        0,
        IPUS_PER_MACHINE,
        cut=run * IPUS_PER_MACHINE,
    )


def _place_across_domains(occupancy: Occupancy, machines: int, segments: int) -> Block | None:
    domains = _domains(occupancy)
    longest = [_longest(domain) for domain in domains]
    best: tuple[int, int, int, int] | None = None
    for ild, blocked in enumerate(_combined([int.from_bytes(domain) for domain in domains], segments)):
        taken = range(ild, ild + segments)
        elsewhere = max(longest[:ild] + longest[ild + segments :], default=0)
        for start, run in _runs(blocked.to_bytes(occupancy.per_ild)):
            # A position inside a common run never leaves a longer free run than the better of its ends.
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
    return Block(occupancy.first // occupancy.per_ild + ild, segments, machine, machines, 0, IPUS_PER_MACHINE, cut)


def _combined(domains: list[int], segments: int) -> list[int]:
    """Return, for each first domain, the positions that are blocked in any of ``segments`` consecutive domains.

    ``segments`` is a power of two. Domains and results are the bytes of ``_domains`` as integers.
    """
    width = 1
    while width < segments:
        domains = [domain | other for domain, other in zip(domains, domains[width:], strict=False)]
        width *= 2
    return domains


def _longest(blocked: bytes) -> int:
    """Return the length of the longest free run."""
    return max(map(len, blocked.split(_BLOCKED)))


def _longest_without(blocked: bytes, machine: int, machines: int) -> int:
    """Return the length of the longest free run once these machines are in use."""
    return _longest(blocked[:machine] + _BLOCKED * machines + blocked[machine + machines :])


def _domains(occupancy: Occupancy) -> list[bytes]:
    """Return the blocked machines of each IPU-Link domain, one byte per machine."""
    before = occupancy.first % occupancy.per_ild
    after = -(before + len(occupancy.occupied)) % occupancy.per_ild
    flat = _BLOCKED * before + occupancy.occupied.translate(_BLOCKED_IF_USED) + _BLOCKED * after
    return [flat[index : index + occupancy.per_ild] for index in range(0, len(flat), occupancy.per_ild)]


def _with_boundaries(occupancy: Occupancy) -> bytes:
    """Return the blocked machines of all domains, with one blocked byte at each boundary between two domains.

    An index divided by (machines per domain + 1) gives the domain and the machine in it.
    """
    return _BLOCKED.join(_domains(occupancy))


def _runs(blocked: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and length of every free run."""
    start = 0
    for run in blocked.split(_BLOCKED):
        if run:
            yield start, len(run)
        start += len(run) + 1


def _free_blocks(mask: int, size: int) -> list[int]:
    """Return the first IPU of every free aligned block of a machine with these used IPUs."""
    block = (1 << size) - 1
    return [ipu for ipu in range(0, IPUS_PER_MACHINE, size) if not mask & block << ipu]


def _smallest_free_block(mask: int, ipu: int) -> int:
    """Return the size of the free aligned block around a free IPU."""
    for size in (IPUS_PER_MACHINE, 2):
        if ipu // size * size in _free_blocks(mask, size):
            return size
    return 1


@cache
def _choices_in_used_machine(size: int) -> tuple[tuple[int, int, int], ...]:
    """Return the choices for ``size`` IPUs of a machine with used IPUs, best fit first.

    A choice has the used IPUs of the machine, the first IPU to use, and the size of the free block that contains it.
    """
    options = []
    for mask in range(1, FULL):
        cuts = [(_smallest_free_block(mask, ipu), ipu) for ipu in _free_blocks(mask, size)]
        if cuts:
            cut, ipu = min(cuts)
            options.append((cut, mask.bit_count() * -1, mask, ipu))
    return tuple((mask, ipu, cut) for cut, _, mask, ipu in sorted(options))


@cache
def _numbers_of_free_blocks(size: int) -> tuple[tuple[int, int], ...]:
    """Return the number of free blocks of ``size`` IPUs on a machine, for all used IPUs that leave any."""
    return tuple((mask, len(_free_blocks(mask, size))) for mask in range(FULL))
