# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of the pods of a job with its specification: which ones are outdated, and which ones are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from openipu.kubernetes.domain import manifests, names, progress, reserved, status
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.progress import Pod, Progress, Stage

_STUCK_SECONDS = 30.0  # after the grace period of a pod, which is part of its deletion timestamp


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a job. ``pods``: those that count, without outdated ones and those that are being deleted."""

    number: int
    pods: Sequence[Pod]
    progress: Progress
    missing: Sequence[str]  # names of pods


@dataclass(frozen=True, slots=True)
class Plan:
    """Instances of a job, and pods to delete."""

    instances: Sequence[Instance]
    outdated: Sequence[Pod]


def make(job: Job, found: Sequence[Pod], attempt: int) -> Plan:
    """Return the plan for a job. ``found``: all its pods. ``attempt``: number of restarts."""
    members: dict[int, list[Pod]] = {number: [] for number in range(job.instances)}
    outdated, replaced, resized = [], set(), set()
    for each in found:
        labels = each["metadata"].get("labels") or {}
        number = int(labels.get(reserved.INSTANCE_LABEL, -1))
        if number in members and labels.get(reserved.ATTEMPT_LABEL) == str(attempt):
            members[number].append(each)
            shape = labels.get(reserved.SHAPE_LABEL, str(job.shape))  # an earlier release wrote none
            if not _is_kept(each):
                continue
            if shape != str(job.shape):
                resized.add(number)
            elif labels.get(reserved.TEMPLATE_LABEL) != job.template_hash:
                replaced.add(number)
        else:
            outdated.append(each)
    # Workers are numbered across instances, so new ones may have the names of former ones of another instance.
    for number in resized | _replaced_now(job, members, replaced):
        outdated += members[number]
        members[number] = []
    return Plan([_instance(job, number, each) for number, each in members.items()], [*filter(_is_kept, outdated)])


def instance_of(pod: Pod) -> int:
    """Return the number of the instance to which a pod belongs."""
    return int((pod["metadata"].get("labels") or {}).get(reserved.INSTANCE_LABEL, "0"))


def is_stuck(pod: Pod, now: float) -> bool:
    """Return whether a deleted pod should have ended, but has not, because its node is lost. ``now``: Unix time."""
    deleted = pod["metadata"].get("deletionTimestamp", "")
    return bool(deleted) and now > status.seconds(deleted) + _STUCK_SECONDS


def _replaced_now(job: Job, members: dict[int, list[Pod]], replaced: set[int]) -> set[int]:
    """Return the instances with a changed template whose pods are deleted now."""
    if not job.rolling_update or not replaced:
        return replaced
    stages = {number: progress.of_instance(job, [*filter(_is_kept, each)]).stage for number, each in members.items()}
    idle = {number for number in replaced if stages[number] is not Stage.RUNNING}
    if idle:
        return idle
    return {min(replaced)} if all(stage is Stage.RUNNING for stage in stages.values()) else set()


def _instance(job: Job, number: int, members: Sequence[Pod]) -> Instance:
    kept = [*filter(_is_kept, members)]
    found = progress.of_instance(job, kept)
    expected = [names.launcher(job.name[1], number)] if job.has_launcher else []
    expected += manifests.worker_names(job, number)
    present = {each["metadata"]["name"] for each in members}
    ended = found.stage in (Stage.SUCCEEDED, Stage.FAILED)
    return Instance(number, kept, found, [] if ended else [name for name in expected if name not in present])


def _is_kept(pod: Pod) -> bool:
    metadata: dict[str, Any] = pod["metadata"]
    return not metadata.get("deletionTimestamp")
