# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs in the memory of the operator."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from openipu.kubernetes.operator.job_store import JobStore, needed
from tests.unit.kubernetes.domain.ipujobs import first_form


def test_managed_fields_are_not_kept() -> None:
    metadata = {"namespace": "a", "name": "job", "uid": "1", "resourceVersion": "5", "finalizers": ["x"]}
    job = {**first_form(), "metadata": metadata, "status": {"restartCount": 1}}
    received = {**job, "metadata": {**metadata, "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]}}
    assert needed(received) == job
    assert "managedFields" in received["metadata"]  # others may use the received object


NAME = ("a", "job")


def version(revision: str, uid: str = "1") -> dict[str, Any]:
    """Return a job as the API server has it."""
    return {**first_form(), "metadata": {"namespace": "a", "name": "job", "uid": uid, "resourceVersion": revision}}


def stored(*revisions: str) -> JobStore:
    """Return a store that has written these versions of a job. Its cache has version 3."""
    answers = iter(revisions)

    class Server:
        async def patch(self, *request: Any) -> Mapping[str, Any]:
            return version(next(answers))

    server: Any = Server()
    cache: Any = {NAME: version("3")}
    store = JobStore(server, cache)

    async def write() -> None:
        for _ in revisions:
            await store.write_status(NAME, version("3"), {"restartCount": 1})

    asyncio.run(write())
    return store


@pytest.mark.parametrize(
    ("job", "is_foreign"),
    [
        (version("9"), True),  # kubectl has changed it since
        (version("8"), False),  # the last own write
        (version("5"), False),  # an own write before it
        (version("8", uid="2"), True),  # another job with the same name
    ],
)
def test_own_writes_are_told_apart_from_those_of_others(job: dict[str, Any], is_foreign: bool) -> None:
    assert stored("5", "8").receive(NAME, job) is is_foreign


def test_without_own_writes_others_have_written_a_version() -> None:
    assert stored().receive(NAME, version("4"))


def test_a_written_version_is_kept_until_the_cache_has_it() -> None:
    store = stored("5", "8")
    store.receive(NAME, version("5"))
    assert store.find(NAME) == version("8")
    store.receive(NAME, version("8"))
    assert store.find(NAME) == version("3")  # what the cache has
