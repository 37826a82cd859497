# SPDX-License-Identifier: GPL-3.0-or-later
"""Placement of allocations on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Sequence


def are_consecutive(positions: Sequence[int]) -> bool:
    """Return whether the positions are consecutive; a negative position never is."""
    return min(positions) >= 0 and list(positions) == list(range(positions[0], positions[0] + len(positions)))


def free_runs(free: Sequence[bool]) -> list[tuple[int, int]]:
    """Return start and length of every run of free machines."""
    runs: list[tuple[int, int]] = []
    start = 0
    for position, is_free in enumerate([*free, False]):
        if not is_free:
            if position > start:
                runs.append((start, position - start))
            start = position + 1
    return runs


def best_run(free: Sequence[bool], size: int, per_ild: int) -> int | None:
    """Return the first of ``size`` consecutive free machines, or None when there is no such run.

    Partitions are placed inside IPU-Link domains. So the run spans as few domains as possible and has as
    many complete domains as possible. Then the best fit wins, at an end of the smallest free run.
    """
    best: tuple[int, int, int, int] | None = None
    for start, run in free_runs(free):
        end = start + run
        boundaries = range(-(-start // per_ild) * per_ild, end + 1, per_ild)
        starts = {start, end - size, *boundaries, *(boundary - size for boundary in boundaries)}
        for first in starts:
            if start <= first <= end - size:
                domains = (first + size - 1) // per_ild - first // per_ild + 1
                whole = max(0, (first + size) // per_ild - -(-first // per_ild))
                inside = min(end, (first // per_ild + domains) * per_ild) - max(start, first // per_ild * per_ild)
                candidate = (domains, -whole, inside, first)
                if best is None or candidate < best:
                    best = candidate
    return None if best is None else best[3]
