# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules ask of a controller, whichever way it is reached. Errors are VipuError everywhere."""

from __future__ import annotations

import typing as t

from ..reconcile import ItemError, Object, Step


class Transport(t.Protocol):
    """A way to a controller. Objects are dicts with the fields of ``resources``."""

    def close(self) -> None:
        """Let go of whatever is open."""

    def version(self) -> str:
        """The controller's version."""

    def read(self, kind: str) -> list[Object]:
        """All objects of a kind, with what there is to know of them beyond the family's fields.

        Partitions carry ``state``; agents ``state``, ``cluster`` and ``allocation``. A field that
        this way cannot read is missing from the dict.
        """

    def read_all(self, kinds: t.Sequence[str]) -> dict[str, list[Object]]:
        """``read`` for several kinds, at once where that saves time."""

    def write(self, steps: list[Step], force: bool) -> list[ItemError]:
        """Carry out steps of any families; where the controller can, in one transaction."""

    def foretell(self, steps: list[Step], force: bool) -> list[ItemError]:
        """What ``write`` would give, without changing anything; nothing where the controller cannot be asked.

        What is refused for want of something that does not exist is Failure.MISSING.
        """

    def partition_status(self, id: str) -> Object:
        """``state``, ``operation``, ``errors`` (list), ``max_retries``, ``retries``, ``last_auto_reset``.

        What this way cannot tell is None, and errors are empty.
        """

    def partition_statuses(self, ids: t.Sequence[str]) -> dict[str, Object]:
        """``partition_status`` by id, without those that are gone."""

    def partition_details(self, ids: t.Sequence[str]) -> dict[str, Object]:
        """What is told of single partitions beyond ``read``, by id: as few calls as there are of them."""

    def reset_partition(self, id: str, relocatable: bool) -> None:
        """Reset a partition; it is done when its status says so."""

    def ipuof_config(self, id: str) -> list[Object]:
        """The IPUoF configuration of a partition: one JSON object per GCD."""

    def ipu_attributes(self) -> dict[str, dict[int, dict[str, str]]]:
        """What the agents that are Up tell of their IPUs: agent, number of the IPU, attributes."""

    def fits(self, allocation: str, sizes: list[int]) -> dict[int, int]:
        """How many more partitions of each size the allocation takes."""

    def discovered(self) -> list[Object]:
        """Agents heard by multicast: ``host``, ``port``, ``interface``, ``age``, ``auto_add_id``, ``agent``."""

    def access_key(self, user: str) -> str | None:
        """The key of a user that ``write`` has just created; told once."""

    def start_test(self, cluster: str, tests: t.Sequence[str]) -> Object:
        """Begin tests of a cluster, all but PFC-settings when none is named; the run as it begins."""

    def test_run(self, known: int = 0, seconds: float = 0.0) -> Object:
        """The last run as ``objects.test_run`` gives it, ``state`` none when there was none.

        With ``seconds`` it comes when the run is over or has more results than ``known``, or after that
        time. What this way cannot tell is None.
        """

    def stop_test(self, run: Object) -> None:
        """Stop this run; over the command lines, which cannot name one, whichever is in progress."""
