# SPDX-License-Identifier: GPL-3.0-or-later
"""Webhooks of IPUJobs: explicit defaults, and checks with one sentence for each problem."""

from __future__ import annotations

from collections.abc import Set

from openipu.kubernetes.cluster.client import Client, Object
from openipu.kubernetes.domain import defaults, json_patch, validation
from openipu.kubernetes.domain.pods import PodOptions
from openipu.kubernetes.webhooks.pod_trial import PodTrial
from openipu.kubernetes.webhooks.reviews import Answer, Review


class JobWebhooks:
    """Answers of the webhooks of IPUJobs. ``namespaces``: those whose jobs they check, empty for all."""

    def __init__(self, client: Client, options: PodOptions, namespaces: Set[str]) -> None:
        self._options = options
        self._namespaces = namespaces
        self._trial = PodTrial(client, options)

    async def mutate(self, review: Review) -> Answer:
        """Return the defaults of a new or changed job."""
        new = self._checked(review)
        return Answer() if new is None else Answer(patch=json_patch.difference(new, defaults.completed(new)))

    async def validate(self, review: Review) -> Answer:
        """Return what is wrong with a new or changed job."""
        new, old = self._checked(review), review.old
        if new is None:
            return Answer()
        new = defaults.completed(new)
        if old is not None and old.get("spec") == new.get("spec"):
            return Answer()  # an operator that finds an invalid job must be able to write its finalizer
        problems = validation.problems(new)
        if old is not None and not problems:
            problems = validation.changes(old, new)
        if problems:
            return Answer(problems)
        problems, warnings = await self._trial.run(new, is_new=old is None)
        return Answer(
            problems, warnings=[*validation.warnings(new, host_network=self._options.host_network), *warnings]
        )

    def _checked(self, review: Review) -> Object | None:
        """Return the job of a review, None if it needs no answer."""
        is_served = not self._namespaces or review.namespace in self._namespaces
        if not is_served or review.operation not in ("CREATE", "UPDATE") or review.subresource or review.new is None:
            return None
        return None if review.new["metadata"].get("deletionTimestamp") else review.new
