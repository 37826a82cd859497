# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults of IPUJobs."""

from __future__ import annotations

from typing import Any

import pytest

from openipu.kubernetes.domain import defaults
from tests.unit.kubernetes.domain.ipujobs import first_form


def without_defaults(**spec: Any) -> dict[str, Any]:
    ipujob = first_form(cleanPodPolicy=None, restartPolicy=None, **spec)
    ipujob["spec"]["workers"].pop("replicas")
    return ipujob


def test_defaults_are_explicit() -> None:
    assert defaults.completed(without_defaults()) == first_form()


def test_values_of_users_stay() -> None:
    given = first_form(cleanPodPolicy="All", restartPolicy={"type": "Always", "backOffLimit": 0})
    assert defaults.completed(given) == given


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "OnFailure"}, {"type": "OnFailure", "backOffLimit": 3}),
        ({"backOffLimit": None}, {"type": "Never", "backOffLimit": 3}),
    ],
)
def test_parts_of_the_restart_policy(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert defaults.completed(first_form(restartPolicy=given))["spec"]["restartPolicy"] == expected


def test_interactive_jobs_end_after_an_hour() -> None:
    assert defaults.completed(first_form(interactive={}))["spec"]["interactive"] == {"ttl": 3600}


@pytest.mark.parametrize("spec", [None, "text", {"restartPolicy": "Never"}, {"workers": []}])
def test_the_schema_rejects_other_types(spec: Any) -> None:
    """Such a job must reach the schema, whose message names the field."""
    completed = defaults.completed({"metadata": {"name": "job"}, "spec": spec})["spec"]
    assert completed == spec or {name: completed[name] for name in spec} == spec


def test_the_given_job_stays_as_it_is() -> None:
    given = without_defaults()
    defaults.completed(given)
    assert given == without_defaults()
