# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs read from both forms of the specification, and their restarts."""

from __future__ import annotations

import pytest

from openipu.kubernetes.domain import job
from openipu.kubernetes.domain.job import CleanPodPolicy, RestartPolicy, Restarts, Shape
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers


@pytest.mark.parametrize(
    ("ipujob", "shape"),
    [
        (first_form(), Shape(4, 1, 4)),
        (first_form(modelReplicas=8, ipusPerModelReplica=2, workers=workers(4)), Shape(16, 4, 8)),
        (second_form(), Shape(4, 1, 1)),
        (second_form(workersPerJobInstance="2"), Shape(4, 2, 2)),
        (second_form(workersPerJobInstance="2", modelReplicasPerWorker="2"), Shape(4, 2, 4)),
    ],
)
def test_shape(ipujob, shape):
    assert job.read(ipujob).shape == shape


def test_shares_of_a_worker():
    shape = Shape(ipus=16, workers=4, replicas=8)
    assert (shape.ipus_per_worker, shape.ipus_per_replica, shape.replicas_per_worker) == (4, 2, 2)


def test_defaults():
    found = job.read(first_form())
    assert (found.instances, found.ttl, found.suspended) == (1, None, False)
    assert found.restarts == Restarts(RestartPolicy.NEVER, 3)
    assert found.clean_pods is CleanPodPolicy.NONE
    assert found.has_launcher


def test_scaling_belongs_to_both_forms():
    assert job.read(first_form(jobInstances=3)).instances == 3
    assert job.read(second_form(jobInstances=0)).instances == 0


def test_a_job_without_launcher():
    assert not job.read(second_form()).has_launcher
    assert job.read(second_form(interactive={"ttl": 60})).has_launcher


@pytest.mark.parametrize(
    ("policy", "after_success", "after_1", "after_130"),
    [
        (RestartPolicy.NEVER, False, False, False),
        (RestartPolicy.ALWAYS, True, True, True),
        (RestartPolicy.ON_FAILURE, False, True, True),
        (RestartPolicy.EXIT_CODE, False, False, True),
    ],
)
def test_restart_policies(policy, after_success, after_1, after_130):
    restarts = Restarts(policy, 3, frozenset({130}))
    assert [restarts.permitted(code, 2) for code in (0, 1, 130)] == [after_success, after_1, after_130]
    assert not any(restarts.permitted(code, 3) for code in (0, 1, 130))
