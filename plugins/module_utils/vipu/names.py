# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the enum values of the APIs. Numbers are those of the contracts. No I/O."""

from __future__ import annotations

from .cluster_test.table import TESTS


class Names:
    """Conversion between the names and numbers of an enum. Names match in any case."""

    def __init__(self, label: str, names: dict[str, int], also: dict[str, int] | None = None) -> None:
        """``names`` are shown and accepted, ``also`` are accepted only; ``label`` names the enum in messages."""
        self.label = label
        self.choices = list(names)
        self._numbers = {text.lower(): number for text, number in {**names, **(also or {})}.items()}
        self._texts = {number: text for text, number in names.items()}

    def number(self, text: str | None) -> int:
        """Return the number of a name, 0 (the controller chooses) for None. Raises ValueError with a message."""
        if text is None:
            return 0
        try:
            return self._numbers[text.lower()]
        except KeyError:
            raise ValueError(
                "Cannot use %s '%s': it is unknown. Choose from %s." % (self.label, text, ", ".join(self.choices))
            ) from None

    def text(self, number: int) -> str:
        """Return the name of a number, empty for 0, and the number as text when it is unknown."""
        if number in self._texts:
            return self._texts[number]
        return str(number) if number else ""


# Graphcore's command line uses both btnc and BTNC, and public scripts both ringswnc and ring-swnc.
ROUTING = Names("IPU-Link routing", {"dnc": 1, "swnc": 2, "btnc": 3, "ringswnc": 4}, also={"ring-swnc": 4})
GW_ROUTING = Names("GW-Link routing", {"ring": 2, "swring": 3})
# Reconfigurable partitions need "c2-compatible". The public API has no value of that name.
SYNC_TYPE = Names(
    "sync type",
    {"c2-compatible": 1, "independent-rails": 2, "pod-native": 3, "pod-native-replicated-pipeline": 4},
    also={
        "gs2-default": 1,
        "gs2-independent-rails": 2,
        "pod-native-default": 3,
    },
)
READY = Names("state", {"PENDING": 1, "ACTIVE": 2, "REMOVED": 3, "ERROR": 4})
OPERATION = Names("operation", {"IDLE": 1, "CREATING": 2, "REMOVING": 3, "RESETTING": 4, "FAILED": 5})
TOPOLOGY = Names("IPU-Link topology", {"mesh": 1, "torus": 2})
CLUSTER_TOPOLOGY = Names("cluster topology", {"looped": 1})
AGENT_STATE = Names("agent state", {"Unknown": 0, "Up": 1, "Down": 2})
ROLE = Names("role", {"user": 1, "admin": 2})
KIND = Names("kind", {"agent": 1, "cluster": 2, "allocation": 3, "partition": 4, "user": 5})
EVENT_TYPE = Names("type of event", {"put": 1, "delete": 2})
CLUSTER_TEST = Names("cluster test", {name: test.number for name, test in TESTS.items()})
CABLE_KIND = Names("kind of cable", {"IPU-Link": 1, "GW-Link": 2, "Sync-Link": 3})
TEST_FAILURE = Names(
    "kind of failure",
    {
        "no_cable": 1,
        "wrong_port": 2,
        "no_sync": 3,
        "link_down": 4,
        "corrected_errors": 5,
        "version": 6,
        "pfc_classes": 7,
        "agent_unreachable": 8,
    },
)
TEST_RUN = Names("state", {"none": 0, "running": 1, "finished": 2, "stopped": 3, "aborted": 4})

ALL_ALLOCATIONS = "*"
"""Only item of the list of a user that may use present and future allocations. No allocation has this id."""

NO_ALLOCATIONS = "none"
"""Value of ``--allocations`` for a user without allocations. Without the flag, a new user may use all."""
