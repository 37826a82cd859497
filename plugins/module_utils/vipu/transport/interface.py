# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interface of the transports to a controller. All methods raise VipuError."""

from __future__ import annotations

import typing as t

from ...reconcile import ItemError, Object, Step
from ..client import Connection


class Transport(t.Protocol):
    """Transport to a controller. Objects are dicts with the fields of ``resources``."""

    def close(self) -> None:
        """Close the connection and remove temporary files."""

    def version(self) -> str:
        """Return the version of the controller."""

    def read(self, kind: str) -> list[Object]:
        """Return all objects of a kind, with further fields besides those of the family.

        Partitions have ``state``; agents have ``state``, ``cluster`` and ``allocation``. Fields that this
        transport cannot read are missing.
        """

    def read_all(self, kinds: t.Sequence[str]) -> dict[str, list[Object]]:
        """Return the objects of several kinds, read in parallel where that is faster."""

    def write(self, steps: list[Step], force: bool) -> list[ItemError]:
        """Apply steps of any families, in one transaction where the controller supports it."""

    def validate(self, steps: list[Step], force: bool) -> list[ItemError]:
        """Return the errors of ``write`` without changing anything; empty where the controller cannot validate.

        The failure of a step that references a missing object is Failure.MISSING.
        """

    def partition_status(self, id: str) -> Object:
        """Return ``state``, ``operation``, ``errors`` (list), ``max_retries``, ``retries`` and ``last_auto_reset``.

        Values that this transport cannot read are None; unknown errors are an empty list.
        """

    def partition_statuses(self, ids: t.Sequence[str]) -> dict[str, Object]:
        """Return ``partition_status`` by id, without partitions that no longer exist."""

    def partition_details(self, ids: t.Sequence[str]) -> dict[str, Object]:
        """Return fields of partitions that ``read`` does not have, by id, with as few calls as possible."""

    def reset_partition(self, id: str, relocatable: bool) -> None:
        """Start the reset of a partition. Its status reports the end."""

    def drain_agent(self, id: str, reason: str, force: bool, validate_only: bool) -> Object:
        """Take an agent out of service and start to move its partitions. An empty reason keeps the present one.

        Returns ``changed`` and ``partitions``, each in the form of ``objects.drained``.
        """

    def ipuof_config(self, id: str) -> list[Object]:
        """Return the IPUoF configuration of a partition: one JSON object per GCD."""

    def ipu_attributes(self) -> dict[str, dict[int, dict[str, str]]]:
        """Return the attributes of all IPUs by agent and IPU number, for agents that are Up."""

    def fits(self, allocation: str, sizes: list[int]) -> dict[int, int]:
        """Return how many more partitions of each size fit in the allocation."""

    def discovered(self) -> list[Object]:
        """Return the agents found by multicast.

        Fields are ``host``, ``port``, ``interface``, ``age``, ``auto_add_id``, ``agent`` and ``conflict``.
        """

    def access_key(self, user: str) -> str | None:
        """Return the key of a user that ``write`` has just created. The controller returns it only once."""

    def of_users(self, connection: Connection) -> Connection:
        """Return the connection of a user that ``write`` has just created, with this connection of an administrator."""

    def issued(self, user: str) -> tuple[str, str] | None:
        """Return certificate and key, PEM, that ``write`` has just issued for a new user; None if it issued none."""

    def certificates(self, user: str) -> Object:
        """Return the ``certificates`` of a user, the oldest first, and whether its calls need one (``required``)."""

    def issue_certificate(self, user: str, signing_request: bytes) -> str:
        """Issue a certificate for the key of a request. Return it as PEM."""

    def revoke_certificate(self, user: str, key: str) -> None:
        """Revoke the certificate of the key with this fingerprint."""

    def start_test(self, cluster: str, tests: t.Sequence[str]) -> Object:
        """Start tests of a cluster and return the run. Without names, all tests except PFC-settings run."""

    def test_run(self, known: int = 0, seconds: float = 0.0) -> Object:
        """Return the last run in the form of ``objects.test_run``, with ``state`` none when there was no run.

        With ``seconds``, the call waits that long for the end of the run or for more results than ``known``.
        Values that this transport cannot read are None.
        """

    def test_runs(self) -> list[Object]:
        """Return the last run, and the last run of each other cluster, if the controller keeps them."""

    def stop_test(self, run: Object) -> None:
        """Stop this run. The command lines cannot name a run and stop the current one."""
