# SPDX-License-Identifier: GPL-3.0-or-later
"""Types of cluster tests: tests, failures and verdicts. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from openipu.shared.pod.topology import CableKind
from openipu.shared.vipu.cluster_test.cable_names import port_name


class Test(enum.StrEnum):
    """Tests by their names in results, in the order of execution."""

    __test__ = False  # pytest must not collect it

    SYNC_LINK = "Sync-Link"
    CABLING = "Cabling"
    IPU_LINK = "IPU-Link"
    TRAFFIC = "Traffic"
    GW_LINK = "GW-Link"
    VERSION = "Version"
    PFC_SETTINGS = "PFC-settings"


class FailureKind(enum.StrEnum):
    """Kinds of failures."""

    NO_CABLE = "no_cable"  # nothing connects the two ports, and no cable in them leads to another port
    WRONG_PORT = "wrong_port"  # a cable in one of them leads to another port
    NO_SYNC = "no_sync"  # a sync pulse did not arrive, or arrived elsewhere
    LINK_DOWN = "link_down"  # a link does not train
    CORRECTED_ERRORS = "corrected_errors"  # more than MAX_CORRECTED_ERRORS in one traffic test
    VERSION_MISMATCH = "version"
    PFC_CLASSES = "pfc_classes"
    AGENT_UNREACHABLE = "agent_unreachable"


@dataclass(frozen=True, slots=True)
class End:
    """Chassis port of an IPU-Machine."""

    agent: str
    kind: CableKind
    port: int

    def __str__(self) -> str:
        """Return the port as messages name it."""
        return port_name(self.agent, self.kind, self.port)


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure that a test found. ``reason`` is a complete message."""

    kind: FailureKind
    reason: str
    a: End | None = None  # both ends of a cable, or of its link
    b: End | None = None
    found: End | None = None  # other end of the cable in ``a``, if it is not ``b``
    found_b: End | None = None
    empty: bool = False  # no cable is in ``a``
    empty_b: bool = False
    agent: str = ""  # for failures of one machine
    link: str = ""  # inside that machine
    corrected_errors: int = 0
    traffic_test: int = 0  # from 1
    component: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)  # agent -> version of the component


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one test. ``lines`` are the printed summary."""

    test: Test
    passed: int
    total: int
    lines: tuple[str, ...]
    failures: tuple[Failure, ...] = ()
    skipped: bool = False
    skipped_because: Test | None = None  # the failed test
    disturbs: tuple[str, ...] = ()  # partitions that the skipped test would disturb
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # component -> agent -> version
    duration: float = 0.0  # seconds

    @property
    def ok(self) -> bool:
        """Success: the test found no failure, or had nothing to test."""
        return not self.failures and self.skipped_because is None

    def with_duration(self, seconds: float) -> Verdict:
        """Return the verdict with a duration."""
        return replace(self, duration=seconds)
