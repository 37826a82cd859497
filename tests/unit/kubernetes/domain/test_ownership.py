# SPDX-License-Identifier: GPL-3.0-or-later
"""Owners of the objects of jobs."""

from __future__ import annotations

from typing import Any

import pytest

from openipu.kubernetes.domain import ownership

JOB = {"apiVersion": "graphcore.ai/v1alpha1", "kind": "IPUJob", "name": "job", "uid": "1"}


def thing(*owners: dict[str, str]) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns", "ownerReferences": list(owners)}}


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        ([], None),
        ([JOB], ("job", "1")),
        ([{**JOB, "kind": "Job", "apiVersion": "batch/v1"}, JOB], ("job", "1")),
        ([{**JOB, "apiVersion": "example.org/v1"}], None),
    ],
)
def test_owner(owners: list[dict[str, str]], expected: tuple[str, str] | None) -> None:
    assert ownership.owner(thing(*owners)) == expected


def test_conflicts_name_the_remedy() -> None:
    text = "ConfigMap ns/a exists and belongs to"
    assert ownership.conflict(thing()) == f"{text} no IPUJob. Delete it, or choose another name for the job."
    assert ownership.conflict(thing(JOB)) == f"{text} an earlier IPUJob job. It will be deleted soon."
    text = "Pod ns/a of the job was not created by this operator. Delete it."
    assert ownership.not_created(thing(JOB)) == text
