# SPDX-License-Identifier: GPL-3.0-or-later
"""Selection of cluster tests: their order, and the tests that must be skipped. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from openipu.shared.vipu.cluster_test import table
from openipu.vipu.cluster_test.model import Test, Verdict

DEFAULT_TESTS = tuple(map(Test, table.DEFAULT))
DISTURBING = frozenset(map(Test, table.DISTURBING))

DEPENDS: Mapping[Test, tuple[Test, ...]] = {
    Test.IPU_LINK: (Test.CABLING,),
    Test.TRAFFIC: (Test.SYNC_LINK, Test.IPU_LINK),
    Test.GW_LINK: (Test.CABLING,),
}


def select_tests(tests: Iterable[Test]) -> tuple[Test, ...]:
    """Return the tests in their order; all but PFC-settings when ``tests`` is empty."""
    requested = set(tests)
    return tuple(test for test in Test if test in requested) or DEFAULT_TESTS


def skip_verdict(
    test: Test, requested: Sequence[Test], done: Collection[Verdict], partitions: Sequence[str]
) -> Verdict | None:
    """Return the verdict on a test that must be skipped, None for one that may run.

    A test is skipped when a test that it depends on failed, or when it would disturb partitions. A test
    that is requested alone always runs.
    """
    if len(requested) == 1:
        return None
    results = {verdict.test: verdict for verdict in done}
    for needed in DEPENDS.get(test, ()):
        before = results.get(needed)
        if before and not before.ok:
            cause = before.skipped_because or needed
            line = f"Test did not run because of an earlier dependency test failure ({cause})"
            return Verdict(test, 0, 0, ("Test skipped", line), skipped=True, skipped_because=cause)
    if test in DISTURBING and partitions:
        line = f"Test did not run because it would disturb partitions ({', '.join(partitions)})"
        return Verdict(test, 0, 0, ("Test skipped", line), skipped=True, disturbs=tuple(partitions))
    return None
