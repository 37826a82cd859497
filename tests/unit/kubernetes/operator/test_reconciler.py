# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of the API server after which a reconciliation is repeated, and whether they count as errors."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from openipu.kubernetes.cluster.client import ApiError
from openipu.kubernetes.operator.meters import Meters
from openipu.kubernetes.operator.reconciler import Reconciler
from tests.unit.kubernetes.domain.ipujobs import first_form

# Kubernetes 1.20 creates the token of a service account a moment after the account, and rejects pods until then.
NO_TOKEN = ApiError("No API token found for service account.", 500, "ServerTimeout")
FIELDS: dict[str, Any] = dict.fromkeys(("admission", "partitions", "proxy", "events"))


def errors(meters: Meters) -> float:
    """Return the number of reconciliations that failed."""
    samples = (each for family in meters.collect() for each in family.samples)
    return next(each.value for each in samples if each.name == "ipu_operator_reconcile_errors_total")


@pytest.mark.parametrize(
    ("error", "count"),
    [
        (NO_TOKEN, 0),
        (ApiError("Too many requests.", 429, "TooManyRequests"), 0),
        (ApiError("It has changed.", 409, "Conflict"), 0),
        (ApiError("There is no such job.", 404, "NotFound"), 0),
        (ApiError("It is broken.", 500, "InternalError"), 1),
        (ApiError("The API server does not respond."), 1),
    ],
)
def test_only_errors_without_a_remedy_count(error: ApiError, count: int) -> None:
    def pods(name: Any, uid: str) -> Any:
        raise error

    jobs = SimpleNamespace(find=lambda name: first_form(), discard=lambda name: None)
    children: Any = SimpleNamespace(pods=pods)
    meters = Meters()
    reconcile = meters.timed(Reconciler(jobs, children, **FIELDS).reconcile)  # type: ignore[arg-type]
    if count:
        with pytest.raises(ApiError):
            asyncio.run(reconcile(("ns", "job")))  # type: ignore[arg-type]
    else:
        seconds = asyncio.run(reconcile(("ns", "job")))  # type: ignore[arg-type]
        assert seconds is not None and 0 < seconds <= 2
    assert errors(meters) == count
