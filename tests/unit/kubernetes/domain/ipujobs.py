# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUJobs for tests, as the API server returns them with the defaults of the schema."""

from __future__ import annotations

import copy
from typing import Any


def first_form(**spec: Any) -> dict[str, Any]:
    """Return a job with ``modelReplicas`` and ``ipusPerModelReplica``; ``spec`` replaces or (None) removes fields."""
    return _ipujob(
        {"modelReplicas": "4", "ipusPerModelReplica": "1", "launcher": {"command": ["mpirun", "-np", "1", "train"]}},
        spec,
    )


def second_form(**spec: Any) -> dict[str, Any]:
    """Return a job with ``ipusPerJobInstance``; ``spec`` replaces or (None) removes fields."""
    return _ipujob({"ipusPerJobInstance": "4"}, spec)


def workers(replicas: int = 1, *, metadata: dict[str, Any] | None = None, container: Any = None, **pod: Any) -> Any:
    """Return ``spec.workers``. ``container`` and ``pod`` are additional fields of the template."""
    template = {
        "metadata": metadata or {},
        "spec": {"containers": [{"name": "resnet", "image": "resnet:latest", **(container or {})}], **pod},
    }
    return {"replicas": replicas, "template": template}


def _ipujob(base: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    defaults = {
        "workers": workers(),
        "cleanPodPolicy": "None",
        "restartPolicy": {"type": "Never", "backOffLimit": 3},
    }
    merged = {**defaults, **base, **spec}
    return copy.deepcopy(
        {
            "apiVersion": "graphcore.ai/v1alpha1",
            "kind": "IPUJob",
            "metadata": {"name": "sample", "namespace": "default", "uid": "1234-5678", "generation": 1},
            "spec": {name: value for name, value in merged.items() if value is not None},
        }
    )
