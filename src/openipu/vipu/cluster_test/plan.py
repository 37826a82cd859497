# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster tests: their order, what they depend on, and what they find. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind
from ansible_collections.openipu.pod.plugins.module_utils.vipu import test_table


class Test(enum.StrEnum):
    """The tests as they are named in results, in the order in which they run."""

    __test__ = False  # not one of pytest's

    SYNC_LINK = "Sync-Link"
    CABLING = "Cabling"
    IPU_LINK = "IPU-Link"
    TRAFFIC = "Traffic"
    GW_LINK = "GW-Link"
    VERSION = "Version"
    PFC_SETTINGS = "PFC-settings"


DEFAULT_TESTS = tuple(map(Test, test_table.DEFAULT))
DISTURBING = frozenset(map(Test, test_table.DISTURBING))

DEPENDS: Mapping[Test, tuple[Test, ...]] = {
    Test.IPU_LINK: (Test.CABLING,),
    Test.TRAFFIC: (Test.SYNC_LINK, Test.IPU_LINK),
    Test.GW_LINK: (Test.CABLING,),
}


class FailureKind(enum.StrEnum):
    """What a test finds wrong."""

    NO_CABLE = "no_cable"  # nothing connects the two ports, and no cable of theirs was seen elsewhere
    WRONG_PORT = "wrong_port"  # a cable of theirs leads to another port
    NO_SYNC = "no_sync"  # a sync pulse did not arrive, or arrived elsewhere
    LINK_DOWN = "link_down"  # a link does not train
    CORRECTED_ERRORS = "corrected_errors"  # more than the threshold in one traffic test
    VERSION_MISMATCH = "version"
    PFC_CLASSES = "pfc_classes"
    AGENT_UNREACHABLE = "agent_unreachable"


@dataclass(frozen=True, slots=True)
class End:
    """One chassis port of one IPU-Machine."""

    agent: str
    kind: CableKind
    port: int

    def __str__(self) -> str:
        """For sentences."""
        return f"{self.agent} {self.kind} port {self.port}"


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that is wrong. ``reason`` is a sentence."""

    kind: FailureKind
    reason: str
    a: End | None = None  # both ends of a cable, or of its link
    b: End | None = None
    found: End | None = None  # where the cable in ``a`` leads to instead
    found_b: End | None = None
    empty: bool = False  # no cable is in ``a``
    empty_b: bool = False
    agent: str = ""  # for what belongs to one machine
    link: str = ""  # inside of that machine
    corrected_errors: int = 0
    traffic_test: int = 0  # from 1
    component: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)  # agent -> version of the component


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one test. ``lines`` are its summary as it is printed."""

    test: Test
    passed: int
    total: int
    lines: tuple[str, ...]
    failures: tuple[Failure, ...] = ()
    skipped: bool = False
    skipped_because: Test | None = None  # that failed
    disturbs: tuple[str, ...] = ()  # partitions, because of which it did not run
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # component -> agent -> version
    duration: float = 0.0  # seconds

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong as far as this test knows: also when there was nothing to test."""
        return not self.failures and self.skipped_because is None

    def lasting(self, seconds: float) -> Verdict:
        """The same with its duration."""
        return replace(self, duration=seconds)


def chosen(tests: Iterable[Test]) -> tuple[Test, ...]:
    """The tests in their order; all but PFC-settings when none is asked for."""
    asked = set(tests)
    return tuple(test for test in Test if test in asked) or DEFAULT_TESTS


def skipped(test: Test, asked: Sequence[Test], done: Collection[Verdict], partitions: Sequence[str]) -> Verdict | None:
    """The verdict on a test that must not run: an earlier one failed, or it would disturb partitions.

    A test that is asked for alone runs in any case.
    """
    if len(asked) == 1:
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
