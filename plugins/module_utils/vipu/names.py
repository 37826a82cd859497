# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The enum values of the APIs as people write and read them. Pure; numbers are those of the contracts."""

from __future__ import annotations


class Names:
    """One enum: text to number and back. Text is matched without regard to case."""

    def __init__(self, what: str, names: dict[str, int], also: dict[str, int] | None = None) -> None:
        """``names`` are the forms that are shown; ``also`` are accepted besides."""
        self.what = what
        self.choices = list(names)
        self._numbers = {text.lower(): number for text, number in {**names, **(also or {})}.items()}
        self._texts = {number: text for text, number in names.items()}

    def number(self, text: str | None) -> int:
        """The number; 0, which leaves the choice to the controller, for None. Raises ValueError with a sentence."""
        if text is None:
            return 0
        try:
            return self._numbers[text.lower()]
        except KeyError:
            raise ValueError(
                "There is no %s '%s': choose from %s." % (self.what, text, ", ".join(self.choices))
            ) from None

    def text(self, number: int) -> str:
        """The form that is shown; a number from a newer server as it is, 0 as empty."""
        if number in self._texts:
            return self._texts[number]
        return str(number) if number else ""


# Graphcore's command line writes btnc in some places and BTNC in others; both are one.
ROUTING = Names("IPU-Link routing", {"dnc": 1, "swnc": 2, "btnc": 3, "ringswnc": 4})
GW_ROUTING = Names("GW-Link routing", {"ring": 2, "swring": 3})
# "c2-compatible" is what reconfigurable partitions need; the public API has no value of that name.
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
OUTCOME = Names("outcome", {"unchanged": 1, "created": 2, "changed": 3, "removed": 4, "failed": 5, "not_applied": 6})
CLUSTER_TEST = Names(
    "cluster test",
    {"Sync-Link": 1, "Cabling": 2, "IPU-Link": 3, "Traffic": 4, "GW-Link": 5, "Version": 6, "PFC-settings": 7},
)
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
