# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults of IPUJobs, written into the specification so that ``kubectl describe`` prints them.

Newer API servers take them from the schema of the custom resource. API servers before 1.20 reject or keep fields that
are null. A custom resource that an earlier release of the chart installed may have other defaults.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

_RESTART_POLICY = {"type": "Never", "backOffLimit": 3}
_TTL_SECONDS = 3600


def completed(ipujob: Mapping[str, Any]) -> dict[str, Any]:
    """Return an IPUJob with its defaults. Fields that are not objects stay as they are: the schema rejects them."""
    result = copy.deepcopy(dict(ipujob))
    spec = result.get("spec")
    if not isinstance(spec, dict):
        return result
    _set_missing(spec, {"cleanPodPolicy": "None", "restartPolicy": {}})
    _set_missing(spec["restartPolicy"], _RESTART_POLICY)
    _set_missing(spec.get("workers"), {"replicas": 1})
    _set_missing(spec.get("interactive"), {"ttl": _TTL_SECONDS})
    return result


def _set_missing(fields: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items() if isinstance(fields, dict) else ():
        if fields.get(name) is None:
            fields[name] = copy.deepcopy(value)
