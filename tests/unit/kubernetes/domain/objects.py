# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of jobs for tests, with the states that kubelet reports."""

from __future__ import annotations

from typing import Any

from openipu.kubernetes.domain import pods
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.pods import PodOptions

PARTITION = Partition("p", "10.3.1.101", 8090)
OPTIONS = PodOptions(launcher_image="launcher:1", proxy="http://proxy")


def launcher(job: Job, instance: int = 0, attempt: int = 0, **status: Any) -> dict[str, Any]:
    """Return the launcher of an instance."""
    return _reported(pods.launcher(job, instance, PARTITION, attempt, OPTIONS), status)


def worker(job: Job, instance: int = 0, index: int = 0, attempt: int = 0, **status: Any) -> dict[str, Any]:
    """Return a worker of an instance."""
    return _reported(pods.worker(job, instance, index, PARTITION, attempt, OPTIONS), status)


def deleted(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod that is being deleted."""
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2021-03-22T10:10:31Z"}}


def ended(exit_code: int, name: str = "resnet", message: str = "") -> dict[str, Any]:
    """Return the status fields of a pod with a container that has ended."""
    state = {"terminated": {"exitCode": exit_code, **({"message": message} if message else {})}}
    return {"phase": "Failed" if exit_code else "Succeeded", "containerStatuses": [{"name": name, "state": state}]}


def _reported(pod: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "status": {"phase": "Running", **status}}
