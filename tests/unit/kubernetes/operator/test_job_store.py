# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs in the memory of the operator."""

from __future__ import annotations

from openipu.kubernetes.operator.job_store import needed
from tests.unit.kubernetes.domain.ipujobs import first_form


def test_managed_fields_are_not_kept() -> None:
    metadata = {"namespace": "a", "name": "job", "uid": "1", "resourceVersion": "5", "finalizers": ["x"]}
    job = {**first_form(), "metadata": metadata, "status": {"restartCount": 1}}
    received = {**job, "metadata": {**metadata, "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]}}
    assert needed(received) == job
    assert "managedFields" in received["metadata"]  # others may use the received object
