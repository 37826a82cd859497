# SPDX-License-Identifier: GPL-3.0-or-later
"""Webhook of pods: injects IPUs into plain pods that request them, and leaves all others untouched."""

from __future__ import annotations

from collections.abc import Set

from openipu.kubernetes.domain import json_patch, pod_injection
from openipu.kubernetes.domain.pods import PodOptions
from openipu.kubernetes.webhooks.reviews import Answer, Review


class PodWebhook:
    """Answers of the webhook of pods.

    ``namespaces``: those with IPUs for pods, empty for all. ``excluded``: those that the operator needs itself.
    """

    def __init__(self, options: PodOptions, namespaces: Set[str], excluded: Set[str]) -> None:
        self._options = options
        self._namespaces = namespaces
        self._excluded = excluded

    async def mutate(self, review: Review) -> Answer:
        """Return the changes of a new pod."""
        pod, namespace = review.new, review.namespace
        if review.operation != "CREATE" or review.subresource or pod is None or not pod_injection.is_requested(pod):
            return Answer()
        if namespace in self._excluded or (self._namespaces and namespace not in self._namespaces):
            return Answer()
        problems = pod_injection.problems(pod)
        if problems:
            return Answer(problems)
        return Answer(patch=json_patch.difference(pod, pod_injection.inject(pod, self._options)))
