# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights of callers: administrators, users of all allocations, and users of some."""

from __future__ import annotations

import pytest

from openipu.vipu.domain.context import ALL_ALLOCATIONS, Allowed, Context


def test_all_allocations_are_like_a_set_of_every_id() -> None:
    assert "a1" in ALL_ALLOCATIONS
    assert None not in ALL_ALLOCATIONS  # the allocation of a machine that is in none
    assert ALL_ALLOCATIONS.isdisjoint(())
    assert not ALL_ALLOCATIONS.isdisjoint(("a1",))
    assert not ALL_ALLOCATIONS.isdisjoint(("",))


@pytest.mark.parametrize(
    ("allowed", "administrator", "usable"),
    [
        (None, True, ["a1", "a2"]),
        (ALL_ALLOCATIONS, False, ["a1", "a2"]),
        (frozenset({"a1"}), False, ["a1"]),
        (frozenset(), False, []),
    ],
)
def test_rights(allowed: Allowed | None, administrator: bool, usable: list[str]) -> None:
    context = Context(allowed=allowed)
    assert context.administrator is administrator
    assert list(filter(context.may_use, ["a1", "a2"])) == usable
