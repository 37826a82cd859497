# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of placement with an exhaustive search."""

import sys
from collections.abc import Callable, Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.vipu.domain import placement
from openipu.vipu.domain.model import PlacedIpu
from openipu.vipu.domain.placement import Block, Occupancy

Ipu = tuple[int, int]  # position of the machine in the cluster, IPU on the machine


@st.composite
def occupancies(draw: st.DrawFn) -> Occupancy:
    per_ild = draw(st.integers(1, 8))
    first = draw(st.integers(0, 2 * per_ild))
    # Mostly entirely free or entirely used machines, which makes long runs likely.
    machine = st.one_of(st.just(0), st.just(0), st.just(15), st.integers(0, 15))
    occupied = draw(st.lists(machine, min_size=1, max_size=4 * per_ild))
    return Occupancy(bytearray(occupied), first, per_ild)


def used(occupancy: Occupancy) -> set[Ipu]:
    return {
        (occupancy.first + index, ipu)
        for index, mask in enumerate(occupancy.occupied)
        for ipu in range(4)
        if mask >> ipu & 1
    }


def inside(occupancy: Occupancy) -> set[Ipu]:
    return {(occupancy.first + index, ipu) for index in range(len(occupancy.occupied)) for ipu in range(4)}


def ipus_of(block: Block, per_ild: int) -> set[Ipu]:
    return {(ipu.position(per_ild), ipu.ipu) for ipu in block.placed()}


def all_places(occupancy: Occupancy, size: int, segments: int) -> Iterator[set[Ipu]]:
    """Return every place that the rules of placement allow, by exhaustive search."""
    free = inside(occupancy) - used(occupancy)
    last = occupancy.first + len(occupancy.occupied)
    if size < 4:
        for position, ipu in product(range(occupancy.first, last), range(0, 4, size)):
            place = {(position, ipu + offset) for offset in range(size)}
            if place <= free:
                yield place
        return
    machines = size // 4 // segments
    for ild, low in product(range(last // occupancy.per_ild + 1), range(occupancy.per_ild - machines + 1)):
        place = {
            ((ild + segment) * occupancy.per_ild + low + machine, ipu)
            for segment, machine, ipu in product(range(segments), range(machines), range(4))
        }
        if place <= free:
            yield place


def longest_run(occupancy: Occupancy, taken: set[Ipu]) -> int:
    """Return the length of the longest run of entirely free machines in one IPU-Link domain."""
    busy = {position for position, _ in used(occupancy) | taken}
    longest = run = 0
    for position in range(occupancy.first, occupancy.first + len(occupancy.occupied)):
        run = 0 if position % occupancy.per_ild == 0 else run
        run = 0 if position in busy else run + 1
        longest = max(longest, run)
    return longest


def take(occupancy: Occupancy, ipus: set[Ipu]) -> Occupancy:
    occupied = bytearray(occupancy.occupied)
    for position, ipu in ipus:
        occupied[position - occupancy.first] |= 1 << ipu
    return occupancy._replace(occupied=occupied)


sizes_and_segments = st.one_of(
    st.tuples(st.sampled_from([1, 2, 4, 8, 16, 32]), st.just(1)),
    st.sampled_from([(8, 2), (16, 2), (32, 2), (64, 2), (16, 4), (32, 4), (64, 4)]),
)


@settings(max_examples=500, deadline=None)
@given(occupancies(), sizes_and_segments)
def test_finds_a_best_place_if_one_exists(occupancy: Occupancy, size_and_segments: tuple[int, int]) -> None:
    size, segments = size_and_segments
    places = list(all_places(occupancy, size, segments))
    block = placement.place(occupancy, size, segments)
    assert (block is None) == (not places)
    if block is not None:
        ipus = ipus_of(block, occupancy.per_ild)
        assert ipus in places  # free, inside the allocation, whole machines or an aligned block, in one domain each
        assert len(ipus) == size
        assert longest_run(occupancy, ipus) == max(longest_run(occupancy, place) for place in places)


@st.composite
def few_domains(draw: st.DrawFn) -> Occupancy:
    """Generate small domains with mostly free machines, in which many places across domains compete."""
    per_ild = draw(st.integers(2, 4))
    domains = draw(st.integers(2, 5))
    occupied = draw(st.lists(st.sampled_from([0, 0, 0, 15]), min_size=per_ild * domains, max_size=per_ild * domains))
    return Occupancy(bytearray(occupied), draw(st.sampled_from([0, per_ild])), per_ild)


@settings(max_examples=1000, deadline=None)
@given(few_domains(), st.sampled_from([(8, 2), (16, 2), (16, 4)]))
def test_leaves_the_longest_run_free_across_domains(occupancy: Occupancy, size_and_segments: tuple[int, int]) -> None:
    places = list(all_places(occupancy, *size_and_segments))
    block = placement.place(occupancy, *size_and_segments)
    assert (block is None) == (not places)
    if block is not None:
        ipus = ipus_of(block, occupancy.per_ild)
        assert longest_run(occupancy, ipus) == max(longest_run(occupancy, place) for place in places)


@settings(max_examples=500, deadline=None)
@given(st.one_of(occupancies(), few_domains()), sizes_and_segments)
def test_counts_what_fits_one_after_the_other(occupancy: Occupancy, size_and_segments: tuple[int, int]) -> None:
    count, left = 0, occupancy
    while block := placement.place(left, *size_and_segments):
        left = take(left, ipus_of(block, occupancy.per_ild))
        count += 1
    size, segments = size_and_segments
    fits = placement.count_fits(occupancy, size, segments) if segments > 1 else placement.count_fits(occupancy, size)
    assert fits == count
    assert isinstance(fits, int)


@settings(max_examples=300, deadline=None)
@given(occupancies())
def test_free_ipus_runs_and_largest_block(occupancy: Occupancy) -> None:
    assert placement.free_ipus(occupancy) == len(inside(occupancy) - used(occupancy))
    assert max(placement.free_runs(occupancy), default=0) == longest_run(occupancy, set())
    free_machines = {position for position, _ in inside(occupancy)} - {position for position, _ in used(occupancy)}
    assert sum(placement.free_runs(occupancy)) == len(free_machines)
    sizes = [
        size
        for size in (1, 2, 4, 8, 16, 32, 64, 128)
        if placement.place(occupancy, size, placement.segments_for(size, occupancy.per_ild))
    ]
    assert placement.largest_block(occupancy) == max(sizes, default=0)


@settings(max_examples=200, deadline=None)
@given(occupancies(), sizes_and_segments)
def test_numbers_count_up_with_the_machine_and_down_on_it(
    occupancy: Occupancy, size_and_segments: tuple[int, int]
) -> None:
    block = placement.place(occupancy, *size_and_segments)
    if block is None:
        return
    ipus = block.placed()
    size, segments = size_and_segments
    for segment in range(segments):
        part = ipus[segment * size // segments : (segment + 1) * size // segments]
        assert [ipu.routing_id for ipu in part] == list(range(size // segments))
        assert {(ipu.ild, ipu.ild_routing_id) for ipu in part} == {(block.ild + segment, segment)}
        order = [(ipu.topology_id // 4, -ipu.ipu) for ipu in part]
        assert order == sorted(order)
    assert set(block.positions(occupancy.per_ild)) == {ipu.position(occupancy.per_ild) for ipu in ipus}


def test_id_0_is_ipu_3_of_the_lowest_machine() -> None:
    block = placement.place(Occupancy(bytearray(4), 0, 4), 8)
    assert block is not None
    assert block.placed()[0] == PlacedIpu(ild=0, ild_routing_id=0, topology_id=3, routing_id=0)
    assert block.placed()[4] == PlacedIpu(ild=0, ild_routing_id=0, topology_id=7, routing_id=4)


@pytest.mark.parametrize(
    ("occupied", "size", "machine", "ipu"),
    [
        ([0b0000, 0b0001], 1, 1, 1),  # the pair that is already in use
        ([0b0011, 0b0111], 1, 1, 3),  # the last IPU of a machine before a whole pair
        ([0b0000, 0b0001, 0b0011], 2, 2, 2),  # the machine with fewer free IPUs
        ([0b0000, 0b0000, 0b1111, 0b0000], 1, 3, 0),  # a fresh machine from the smallest run
        ([0b0000, 0b0000, 0b1111, 0b0000], 2, 3, 0),
        ([0b0000, 0b0000, 0b1111, 0b0000], 4, 3, 0),
        ([0b0000, 0b0000, 0b1111, 0b0000], 8, 0, 0),
        ([0b0001, 0b0001], 1, 0, 1),  # the lowest of equal machines
        ([0b0000, 0b1111, 0b0000], 4, 0, 0),  # the lowest of equal runs
    ],
)
def test_fragments_as_little_as_possible(occupied: list[int], size: int, machine: int, ipu: int) -> None:
    block = placement.place(Occupancy(bytearray(occupied), 0, len(occupied)), size)
    assert block is not None
    assert (block.machine, block.ipu, block.ipus) == (machine, ipu, min(size, 4))


@pytest.mark.parametrize(
    ("occupied", "size", "segments", "cut"),
    [
        ([0b0001], 1, 1, 1),
        ([0b0011], 1, 1, 2),
        ([0b0000], 1, 1, 4),
        ([0b0000, 0b0000, 0b0000, 0b1111], 8, 1, 12),
        ([0b0000, 0b0000, 0b0000, 0b1111] * 2, 16, 2, 24),
        ([0b0000, 0b1111] * 4, 16, 4, 16),
    ],
)
def test_the_cut_is_the_size_of_the_free_block(occupied: list[int], size: int, segments: int, cut: int) -> None:
    block = placement.place(Occupancy(bytearray(occupied), 0, len(occupied) // segments), size, segments)
    assert block is not None
    assert (block.cut, type(block.cut)) == (cut, int)


def test_the_first_of_equal_places_across_domains_is_chosen() -> None:
    occupancy = Occupancy(bytearray([15, 0, 0, 0, 0, 0, 0, 0, 1]), 0, 3)  # the third domain keeps the longest run
    block = placement.place(occupancy, 8, segments=2)
    assert block is not None
    assert (block.ild, block.machine) == (0, 1)


def test_a_partition_does_not_cross_the_boundary_of_a_domain() -> None:
    occupancy = Occupancy(bytearray([15, 0, 0, 15]), 0, 2)  # two free machines in a row, one in each domain
    assert placement.place(occupancy, 8) is None
    assert placement.place(occupancy, 8, segments=2) is None  # not at the same positions either
    assert placement.place(Occupancy(bytearray([15, 0, 15, 0]), 0, 2), 8, segments=2) is not None


@pytest.mark.parametrize(("size", "per_ild", "segments"), [(64, 16, 1), (128, 16, 2), (16, 3, 2), (1, 1, 1), (8, 1, 2)])
def test_a_partition_spans_as_few_domains_as_its_size_needs(size: int, per_ild: int, segments: int) -> None:
    assert placement.segments_for(size, per_ild) == segments


@pytest.mark.counts_calls
@pytest.mark.parametrize("masks", [[0], [0, 15], [3, 15], [15, 15, 15, 0], [15]])
@pytest.mark.parametrize("size", [1, 4])
def test_the_cost_of_a_search_depends_on_domains_and_not_on_machines(size: int, masks: list[int]) -> None:
    occupancies = [Occupancy(bytearray((masks * machines)[:machines]), 0, 16) for machines in (16, 1024)]
    placement.place(occupancies[0], size)  # its tables are computed once
    one, many = (steps(lambda occupancy=occupancy: placement.place(occupancy, size)) for occupancy in occupancies)
    assert one < 200
    assert many - one <= 2 * 63, "no more than two for each further domain, and none for a machine"


def steps(look: Callable[[], object]) -> int:
    """Return the number of function calls and executed lines: a measure of cost that is equal on all hosts."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        look()
    finally:
        sys.settrace(before)
    return count
