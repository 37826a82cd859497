# SPDX-License-Identifier: GPL-3.0-or-later
"""Endpoint of metrics. Callers need a token of a user with the right to get ``/metrics``."""

# Without ``from __future__ import annotations``: FastAPI evaluates annotations that name local functions.

import asyncio
import hashlib
import http
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Annotated, Any

import prometheus_client
from fastapi import FastAPI, Header
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from openipu.kubernetes.cluster import identity
from openipu.kubernetes.cluster.client import ApiError, Client
from openipu.kubernetes.cluster.work_queue import WorkQueue
from openipu.kubernetes.domain import status as statuses
from openipu.kubernetes.domain.status import State
from openipu.kubernetes.operator.controller import JobController
from openipu.kubernetes.operator.meters import Meters
from openipu.kubernetes.operator.replica import Replica

PATH = "/metrics"

_ALLOWED_SECONDS, _DENIED_SECONDS = 60.0, 5.0  # for which the answers of the API server are kept
_CACHED = 1000  # tokens
_REVIEWS = 4  # at the same time: calls with random tokens must not flood the API server
_OPENMETRICS = "application/openmetrics-text"
_PARTITION_STATES = ("ACTIVE", "PENDING", "ERROR", "REMOVED", "")  # empty: its controller does not respond


class ReplicaCollector(Collector):
    """Values that are read at a scrape. Those of jobs have samples only while this replica leads."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._version = metadata.version("openipu")

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        controller = self._replica.controller
        build = InfoMetricFamily("ipu_operator_build", "Running release.", labels=["version"])
        build.add_metric([self._version], {})
        leader = GaugeMetricFamily("ipu_operator_leader", "Whether this replica leads: 1 or 0.")
        leader.add_metric([], float(controller is not None))
        jobs = GaugeMetricFamily(
            "ipu_operator_jobs",
            "IPUJobs by state: pending, running, restarting, succeeded, failed, suspended.",
            labels=["state"],
        )
        waiting = GaugeMetricFamily("ipu_operator_waiting_jobs", "Jobs that wait for partitions.")
        oldest = GaugeMetricFamily(
            "ipu_operator_oldest_wait_seconds",
            "Time for which a job that can run has waited longest for partitions; 0 for none. A new leader starts at "
            "0.",
        )
        unschedulable = GaugeMetricFamily(
            "ipu_operator_unschedulable_jobs",
            "Waiting jobs that cannot run at present: no V-IPU controller can have their partition, or their pods are "
            "denied.",
        )
        waiting_pods = GaugeMetricFamily(
            "ipu_operator_waiting_pods", "Plain pods on a node of a V-IPU controller that wait for partitions."
        )
        oldest_pod = GaugeMetricFamily(
            "ipu_operator_oldest_pod_wait_seconds",
            "Time for which a plain pod that can run has waited longest for its partition; 0 for none. A new leader "
            "starts at 0.",
        )
        unschedulable_pods = GaugeMetricFamily(
            "ipu_operator_unschedulable_pods",
            "Waiting plain pods that cannot run at present: no V-IPU controller of their node can have their "
            "partition.",
        )
        partitions = GaugeMetricFamily(
            "ipu_operator_partitions",
            "Partitions of jobs by state: active, pending, error, removed (lost), unknown (no response).",
            labels=["state"],
        )
        depth = GaugeMetricFamily(
            "ipu_operator_queue_depth",
            "Keys of a work queue that wait or are handled. Queue: jobs, reservations (namespaces with waiting jobs), "
            "pods, pod_reservations (controllers and namespaces with waiting pods).",
            labels=["queue"],
        )
        longest = GaugeMetricFamily(
            "ipu_operator_longest_handler_seconds",
            "Time for which a handler of a work queue has run longest; 0 for none.",
            labels=["queue"],
        )
        if controller is not None and controller.synced:
            for state, count in _job_states(controller).items():
                jobs.add_metric([state.value.lower()], count)
            waiting.add_metric([], len(controller.admission))
            oldest.add_metric([], controller.admission.longest_wait)
            unschedulable.add_metric([], controller.admission.unschedulable)
            found = controller.partitions.counts()
            for each in _PARTITION_STATES:
                partitions.add_metric([each.lower() or "unknown"], found[each])
            _add_queues(controller.queues, depth, longest)
        pods = self._replica.pods
        if pods is not None and pods.synced:
            waiting_pods.add_metric([], len(pods.waiting))
            oldest_pod.add_metric([], pods.waiting.longest_wait)
            unschedulable_pods.add_metric([], pods.waiting.unschedulable)
            _add_queues(pods.queues, depth, longest)
        yield from (build, leader, jobs, waiting, oldest, unschedulable, waiting_pods, oldest_pod, unschedulable_pods)
        yield from (partitions, depth, longest)


def _add_queues(queues: Mapping[str, WorkQueue[Any]], depth: GaugeMetricFamily, longest: GaugeMetricFamily) -> None:
    """Add the samples of work queues."""
    for name, queue in queues.items():
        depth.add_metric([name], len(queue))
        longest.add_metric([name], queue.longest_seconds)


def registry(meters: Meters, replica: Replica) -> CollectorRegistry:
    """Return all metrics of a replica, and those of its process."""
    found = CollectorRegistry(auto_describe=False)
    found.register(ReplicaCollector(replica))
    found.register(meters)
    ProcessCollector(registry=found)
    return found


class Access:
    """Rights of callers, which the API server reviews. Its answers are kept for a short time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[bytes, tuple[float, http.HTTPStatus]] = {}  # until when, and the status
        self._reviews = asyncio.Semaphore(_REVIEWS)

    async def status(self, authorization: str) -> http.HTTPStatus:
        """Return OK, UNAUTHORIZED or FORBIDDEN for an Authorization header. Raises ApiError."""
        token = identity.bearer_token(authorization)
        if not token:
            return http.HTTPStatus.UNAUTHORIZED
        digest = hashlib.sha256(token.encode()).digest()
        until, status = self._known.get(digest, (0.0, http.HTTPStatus.UNAUTHORIZED))
        if time.monotonic() < until:
            return status
        async with self._reviews:
            status = await self._review(token)
        if len(self._known) >= _CACHED:
            self._known.clear()
        seconds = _ALLOWED_SECONDS if status is http.HTTPStatus.OK else _DENIED_SECONDS
        self._known[digest] = time.monotonic() + seconds, status
        return status

    async def _review(self, token: str) -> http.HTTPStatus:
        user = await identity.review_token(self._client, token)
        if user is None:
            return http.HTTPStatus.UNAUTHORIZED
        allowed = await identity.may_get(self._client, user, PATH)
        return http.HTTPStatus.OK if allowed else http.HTTPStatus.FORBIDDEN


def create(metrics: CollectorRegistry, access: Access) -> FastAPI:
    """Return the application that serves metrics to callers with access."""
    app = FastAPI(openapi_url=None)

    @app.get(PATH)
    async def scrape(authorization: Annotated[str, Header()] = "", accept: Annotated[str, Header()] = "") -> Response:
        try:
            status = await access.status(authorization)
        except ApiError as error:
            return _refusal(http.HTTPStatus.SERVICE_UNAVAILABLE, f"Cannot check the token: {error}")
        if status is http.HTTPStatus.UNAUTHORIZED:
            return _refusal(status, "The token of a service account is required.", {"WWW-Authenticate": "Bearer"})
        if status is http.HTTPStatus.FORBIDDEN:
            return _refusal(status, f"The user of the token has no right to get {PATH}. Bind a ClusterRole with it.")
        if _OPENMETRICS in accept:
            text = openmetrics.generate_latest(metrics)  # type: ignore[no-untyped-call]
            return Response(text, media_type=openmetrics.CONTENT_TYPE_LATEST)
        return Response(prometheus_client.generate_latest(metrics), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    return app


def _refusal(status: http.HTTPStatus, text: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers)


def _job_states(controller: JobController) -> Counter[State]:
    """Return state -> number of jobs, also for states without jobs. New jobs are pending."""
    found = Counter(dict.fromkeys(State, 0))
    found.update(statuses.state(each.get("status") or {}) or State.PENDING for each in controller.jobs)
    return found
