# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of the API server after which a reconciliation is repeated, and whether they count as errors."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from openipu.kubernetes.cluster.client import ApiError
from openipu.kubernetes.cluster.work_queue import WorkQueue
from openipu.kubernetes.operator.meters import Meters
from openipu.kubernetes.operator.reconciler import Reconciler
from tests.unit.kubernetes.domain.ipujobs import first_form

# Kubernetes 1.20 creates the token of a service account a moment after the account, and rejects pods until then.
# It asks to try again after a second.
NO_TOKEN = ApiError("No API token found for service account.", 500, "ServerTimeout", 1.0)
BUSY = ApiError("Too many requests.", 429, "TooManyRequests")
FIELDS: dict[str, Any] = dict.fromkeys(("admission", "partitions", "proxy", "events"))


def errors(meters: Meters) -> float:
    """Return the number of reconciliations that failed."""
    samples = (each for family in meters.collect() for each in family.samples)
    return next(each.value for each in samples if each.name == "ipu_operator_reconcile_errors_total")


def reconciler(pods: Callable[[Any, str], Any]) -> Reconciler:
    """Return a reconciler of one job. ``pods``: returns its pods, or raises an error."""
    jobs: Any = SimpleNamespace(find=lambda name: first_form(), discard=lambda name: None)
    children: Any = SimpleNamespace(pods=pods)
    return Reconciler(jobs, children, **FIELDS)


@pytest.mark.parametrize(
    ("error", "pauses"),
    [
        (BUSY, (0.1, 0.2, 0.4, 0.8)),
        (ApiError("Timeout.", 504, "Timeout"), (0.1, 0.2, 0.4, 0.8)),
        (NO_TOKEN, (1.0, 1.0)),
    ],
)
def test_requests_to_try_again_have_growing_pauses_and_do_not_count(error: ApiError, pauses: tuple[float, ...]) -> None:
    meters, attempts = Meters(), []

    def pods(name: Any, uid: str) -> Any:
        attempts.append(asyncio.get_running_loop().time())
        raise error

    async def run() -> None:
        queue = WorkQueue(meters.timed(reconciler(pods).reconcile))
        queue.add(("ns", "job"))
        task = asyncio.create_task(queue.run())
        async with asyncio.timeout(20):
            while len(attempts) <= len(pauses):
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    found = [later - earlier for earlier, later in itertools.pairwise(attempts)]
    for pause, least in zip(found, pauses, strict=True):  # seconds; a busy machine makes them longer
        assert pause > 0.9 * least
    assert errors(meters) == 0


@pytest.mark.parametrize(
    ("error", "count"),
    [
        (ApiError("It has changed.", 409, "Conflict"), 0),
        (ApiError("There is no such job.", 404, "NotFound"), 0),
        (ApiError("It is broken.", 500, "InternalError"), 1),
        (ApiError("The API server does not respond."), 1),
    ],
)
def test_only_errors_without_a_remedy_count(error: ApiError, count: int) -> None:
    def pods(name: Any, uid: str) -> Any:
        raise error

    meters = Meters()
    reconcile = meters.timed(reconciler(pods).reconcile)
    if count:
        with pytest.raises(ApiError):
            asyncio.run(reconcile(("ns", "job")))  # type: ignore[arg-type]
    else:
        seconds = asyncio.run(reconcile(("ns", "job")))  # type: ignore[arg-type]
        assert seconds is not None and 0 < seconds <= 2
    assert errors(meters) == count
