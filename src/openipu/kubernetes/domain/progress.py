# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of an instance of a job, as its pods show it.

A launcher decides when there is one. Without a launcher, the instance succeeds when all workers have succeeded, and
fails when one of them fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from openipu.kubernetes.domain import reserved
from openipu.kubernetes.domain.job import Job

Pod = Mapping[str, Any]

KILLED = 137
"""Exit code of a program that was killed. Also used when nothing is known: evicted pods, lost nodes and partitions."""


class Stage(Enum):
    """Stage of an instance."""

    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """Stage of an instance. ``exit_code`` and ``cause`` (a sentence) describe a failure."""

    stage: Stage
    exit_code: int = 0
    cause: str = ""


def of_instance(job: Job, pods: Sequence[Pod]) -> Progress:
    """Return the progress of an instance. ``pods``: those of the present attempt."""
    workers = [each for each in pods if role(each) == reserved.WORKER_ROLE]
    if not job.has_launcher:
        return _of_workers(workers, job.shape.workers)
    launcher = next((each for each in pods if role(each) == reserved.LAUNCHER_ROLE), None)
    if launcher is None:
        # Launchers are created before their workers. The programs that a deleted launcher has started still run.
        return Progress(Stage.FAILED, KILLED, "the launcher was deleted.") if workers else Progress(Stage.STARTING)
    progress = _of_pod(launcher)
    waits = progress.stage is Stage.STARTING or (progress.stage is Stage.RUNNING and job.ttl is not None)
    failures = (each for each in map(_of_pod, workers) if each.stage is Stage.FAILED)
    return next(failures, progress) if waits else progress  # a running mpirun notices lost workers itself


def worker_counts(pods: Iterable[Pod]) -> dict[str, int]:
    """Return the numbers of active, succeeded and failed workers, without zeros."""
    names = {"Running": "active", "Succeeded": "succeeded", "Failed": "failed"}
    counts = Counter(names.get(phase(each), "") for each in pods if role(each) == reserved.WORKER_ROLE)
    return {name: counts[name] for name in names.values() if counts[name]}


def is_ready(pod: Pod) -> bool:
    """Return whether a pod is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def obstacle(pods: Iterable[Pod]) -> str:
    """Return why a pod does not start, an empty text if nothing is known: no suitable node, or no image."""
    for pod in pods:
        status = pod.get("status") or {}
        name = pod["metadata"]["name"]
        for condition in status.get("conditions") or []:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return f"Pod {name} has no node: {condition.get('message') or condition.get('reason', '')}"
        for container in _containers(status):
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
                text = f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
                return f"Container {container['name']} of pod {name} does not start: {text}"
    return ""


def role(pod: Pod) -> str:
    """Return the role of a pod of a job."""
    return str((pod["metadata"].get("labels") or {}).get(reserved.ROLE_LABEL, ""))


def phase(pod: Pod) -> str:
    """Return the phase of a pod."""
    return str((pod.get("status") or {}).get("phase", ""))


def _of_workers(workers: Sequence[Pod], expected: int) -> Progress:
    found = [_of_pod(each) for each in workers]
    for each in found:
        if each.stage is Stage.FAILED:
            return each
    for stage in (Stage.SUCCEEDED, Stage.RUNNING):
        active = (stage, Stage.SUCCEEDED)
        if len(found) == expected and all(each.stage in active for each in found):
            return Progress(stage)
    return Progress(Stage.STARTING)


def _of_pod(pod: Pod) -> Progress:
    match phase(pod):
        case "Running":
            return Progress(Stage.RUNNING)
        case "Succeeded":
            return Progress(Stage.SUCCEEDED)
        case "Failed":
            return _failure(pod)
    return Progress(Stage.STARTING)


def _failure(pod: Pod) -> Progress:
    status, name = pod.get("status") or {}, pod["metadata"]["name"]
    for container in _containers(status):
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            cause = f"container {container['name']} of pod {name} ended with exit code {ended['exitCode']}"
            message = str(ended.get("message") or "").strip()
            return Progress(Stage.FAILED, int(ended["exitCode"]), f"{cause}: {message}" if message else f"{cause}.")
    known = [str(status[each]) for each in ("reason", "message") if status.get(each)]
    return Progress(Stage.FAILED, KILLED, f"pod {name} failed: {': '.join(known) or 'no reason given.'}")


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
