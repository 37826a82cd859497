# SPDX-License-Identifier: GPL-3.0-or-later
"""Trial of the pods of a job: the API server checks them in a dry run, so that no job starts with invalid pods."""

from __future__ import annotations

import asyncio
import http
import uuid
from typing import Any

import structlog

from openipu.kubernetes.cluster.client import (
    CONFIG_MAPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    ApiError,
    Client,
    Object,
    Resource,
)
from openipu.kubernetes.domain import job as jobs
from openipu.kubernetes.domain import manifests, names, pods
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.ownership import conflict, owner
from openipu.kubernetes.domain.pods import PodOptions

_log = structlog.get_logger("openipu.kubernetes.webhooks.pod_trial")

_SECONDS = 5.0  # the operator finds what is not checked in this time
_TRIALS = 16  # at the same time, so that the API server keeps room for other requests
_CHECKED_WORKERS = 16  # whose names are looked up
_INVALID = frozenset({http.HTTPStatus.BAD_REQUEST, http.HTTPStatus.UNPROCESSABLE_ENTITY})


class PodTrial:
    """Check of the pods that a job would have. A failure of the check itself is no problem of the job."""

    def __init__(self, client: Client, options: PodOptions) -> None:
        self._client = client
        self._options = options
        self._slots = asyncio.Semaphore(_TRIALS)

    async def run(self, ipujob: Object, *, is_new: bool) -> tuple[list[str], list[str]]:
        """Return problems and warnings, a sentence each. ``is_new``: no object of the job exists yet."""
        ipujob = {**ipujob, "metadata": {**ipujob["metadata"], "uid": str(uuid.uuid4())}}  # a new job has none
        job = jobs.read(ipujob)
        try:
            async with asyncio.timeout(_SECONDS), self._slots:
                problems, warnings = await self._create_pods(job)
                if is_new and not problems:
                    problems = await self._conflicts(job)
        except (ApiError, TimeoutError) as error:
            _log.warning("pods not checked", job="/".join(job.name), error=str(error) or type(error).__name__)
            return [], []
        return problems, warnings

    async def _create_pods(self, job: Job) -> tuple[list[str], list[str]]:
        partition = Partition("trial", "0.0.0.0", 1)  # noqa: S104  a value, nothing listens
        found = [(pods.worker(job, 0, 0, partition, 0, self._options), "spec.workers.template is invalid")]
        if job.has_launcher:
            launcher = pods.launcher(job, 0, partition, 0, self._options)
            del launcher["spec"]["serviceAccountName"]  # it does not exist yet
            found.append((launcher, "The launcher is invalid"))
        for pod, text in found:
            try:
                await self._client.create(PODS, pod, dry_run=True)
            except ApiError as error:
                if error.code in _INVALID:
                    return [f"{text}: {_cause(error)}"], []
                if error.code == http.HTTPStatus.FORBIDDEN:
                    return [], [f"The pods are denied at present, and the job waits until they are not: {error}"]
                if not error.already_exists:
                    raise
        return [], []

    async def _conflicts(self, job: Job) -> list[str]:
        """Return the first name of the job that an object has which belongs to no job."""
        name = job.name[1]
        expected: list[tuple[Resource, str, str]] = [
            (PODS, "Pod", each) for each in manifests.worker_names(job, 0)[:_CHECKED_WORKERS]
        ]
        if job.has_launcher:
            account = names.account(name)
            expected += [
                (PODS, "Pod", names.launcher(name, 0)),
                (CONFIG_MAPS, "ConfigMap", names.config(name, 0)),
                (SERVICE_ACCOUNTS, "ServiceAccount", account),
                (ROLES, "Role", account),
                (ROLE_BINDINGS, "RoleBinding", account),
            ]
        found = await asyncio.gather(*(self._client.find(kind, job.name[0], each) for kind, _, each in expected))
        for (_, kind, _), thing in zip(expected, found, strict=True):
            if thing is not None and owner(thing) is None:
                return [conflict({**thing, "kind": kind})]
        return []


def _cause(error: ApiError) -> str:
    """Return the cause without the name of the trial pod: ``Pod "a" is invalid: spec …``."""
    text: Any = str(error)
    return str(text.partition(" is invalid: ")[2] or text)
