# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of IPUJobs, each with one sentence."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.kubernetes.domain import job, validation
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers


def only(ipujob) -> str:
    """Return the only problem."""
    (problem,) = validation.problems(ipujob)
    return problem


def test_both_forms_are_valid():
    assert validation.problems(first_form()) == []
    assert validation.problems(second_form()) == []
    assert validation.problems(second_form(workersPerJobInstance="2", modelReplicasPerWorker="2", jobInstances=3)) == []


@pytest.mark.parametrize(
    ("ipujob", "problem"),
    [
        (
            first_form(ipusPerJobInstance="4"),
            "spec.modelReplicas and spec.ipusPerJobInstance belong to different forms. Use modelReplicas with "
            "ipusPerModelReplica, or ipusPerJobInstance.",
        ),
        (
            first_form(modelReplicas=None),
            "spec has no modelReplicas. Set modelReplicas and ipusPerModelReplica, or ipusPerJobInstance.",
        ),
        (
            first_form(modelReplicas=None, ipusPerModelReplica=None),
            "spec has no modelReplicas and no ipusPerModelReplica. Set modelReplicas and ipusPerModelReplica, or "
            "ipusPerJobInstance.",
        ),
        (
            second_form(ipusPerJobInstance=None, workersPerJobInstance="2"),
            "spec.workersPerJobInstance needs spec.ipusPerJobInstance. Add the number of IPUs of each instance.",
        ),
        (
            second_form(workers=workers(2)),
            "spec.workers.replicas belongs to jobs with modelReplicas. Use workersPerJobInstance with "
            "ipusPerJobInstance.",
        ),
    ],
)
def test_forms(ipujob, problem):
    assert only(ipujob) == problem


@pytest.mark.parametrize(
    ("ipujob", "problem"),
    [
        (
            first_form(modelReplicas="3"),
            "spec.modelReplicas × spec.ipusPerModelReplica is 3, but the size of a partition is a power of two. Use "
            "1, 2, 4, 8, 16, 32 or 64.",
        ),
        (
            first_form(modelReplicas="64", ipusPerModelReplica="2"),
            "spec.modelReplicas × spec.ipusPerModelReplica is 128, but a partition has at most 64 IPUs. Use fewer, or "
            "more job instances.",
        ),
        (
            second_form(ipusPerJobInstance="128"),
            "spec.ipusPerJobInstance is 128, but a partition has at most 64 IPUs. Use fewer, or more job instances.",
        ),
        (
            first_form(workers=workers(3)),
            "spec.modelReplicas × spec.ipusPerModelReplica is 4, which cannot be divided by spec.workers.replicas "
            "(3). Use a power of two of at most 4 workers.",
        ),
        (
            first_form(modelReplicas="1", ipusPerModelReplica="4", workers=workers(2)),
            "spec.modelReplicas is 1, which cannot be divided by spec.workers.replicas (2). Use the same number of "
            "model replicas in each worker.",
        ),
        (
            second_form(modelReplicasPerWorker="3"),
            "spec.ipusPerJobInstance is 4, which cannot be divided by the 3 model replicas "
            "(spec.workersPerJobInstance × spec.modelReplicasPerWorker). Use a power of two of replicas.",
        ),
    ],
)
def test_sizes(ipujob, problem):
    assert only(ipujob) == problem


@pytest.mark.parametrize(
    ("ipujob", "problem"),
    [
        (
            first_form(interactive={"ttl": 60}),
            "spec.interactive and spec.launcher.command exclude each other. An interactive job runs no command.",
        ),
        (first_form(launcher={}), "spec.launcher.command is missing. Set the program of the job, or spec.interactive."),
        (
            first_form(launcher={"command": ["train"], "resources": {"limits": {"graphcore.ai/ipu": 4}}}),
            "spec.launcher.resources has graphcore.ai/ipu, but only workers use IPUs. Remove it.",
        ),
        (
            first_form(restartPolicy={"type": "ExitCode"}),
            "spec.restartPolicy.exitCodes is missing, but ExitCode requires it. An example is '1-127,130'.",
        ),
        (
            first_form(restartPolicy={"type": "ExitCode", "exitCodes": "9-3"}),
            "spec.restartPolicy.exitCodes is invalid: the range '9-3' is empty. An example is '1-127,130'.",
        ),
        (
            first_form(restartPolicy={"type": "Always", "exitCodes": "1"}),
            "spec.restartPolicy.exitCodes has no effect with this type. Set the type to ExitCode, or remove it.",
        ),
        (
            first_form(workers=workers(metadata={"labels": {"graphcore.ai/role": "x"}})),
            "spec.workers.template.metadata.labels has 'graphcore.ai/role', but the prefix belongs to the operator. "
            "Use another name.",
        ),
        (
            first_form(workers=workers(volumes=[{"name": "ipujob-shm", "emptyDir": {}}])),
            "spec.workers.template.spec.volumes has the name 'ipujob-shm', which the operator uses. Use another name.",
        ),
        (
            first_form(workers=workers(container={"name": "ipujob-init"})),
            "spec.workers.template.spec has a container 'ipujob-init', a name of the operator. Use another name.",
        ),
        (
            first_form(workers=workers(container={"env": [{"name": "IPUOF_VIPU_API_HOST", "value": "x"}]})),
            "spec.workers.template.spec.containers[0].env has IPUOF_VIPU_API_HOST, which the operator sets. Remove the "
            "variable.",
        ),
    ],
)
def test_other_rules(ipujob, problem):
    assert only(ipujob) == problem


def test_all_problems_are_reported_at_once():
    found = validation.problems(first_form(modelReplicas="3", launcher={}, restartPolicy={"type": "ExitCode"}))
    assert [problem.partition(" ")[0] for problem in found] == [
        "spec.modelReplicas",
        "spec.launcher.command",
        "spec.restartPolicy.exitCodes",
    ]


@given(st.integers(1, 200), st.integers(1, 9), st.integers(1, 70))
def test_a_valid_job_can_be_divided(replicas, ipus, number):
    ipujob = first_form(modelReplicas=str(replicas), ipusPerModelReplica=str(ipus), workers=workers(number))
    if validation.problems(ipujob):
        return
    shape = job.read(ipujob).shape
    assert shape.ipus in (1, 2, 4, 8, 16, 32, 64)
    assert shape.ipus_per_worker * shape.workers == shape.ipus
    assert shape.replicas_per_worker * shape.workers == shape.replicas
    assert shape.ipus_per_replica * shape.replicas == shape.ipus


@given(st.sampled_from([None, "0", "1", "4", "6", "128"]), st.sampled_from([None, "1", "2", "5"]))
def test_every_problem_is_a_sentence(ipus, number):
    for ipujob in (
        second_form(ipusPerJobInstance=ipus, workersPerJobInstance=number),
        first_form(modelReplicas=ipus, ipusPerModelReplica=number),
    ):
        for problem in validation.problems(ipujob):
            assert re.fullmatch(r"spec.*[a-z0-9)'\]]\. [A-Z].*\.", problem)


def test_changes():
    old = first_form()
    assert validation.changes(old, first_form(jobInstances=2, suspend=True)) == []
    assert validation.changes(old, first_form(workers=workers(container={"image": "resnet:2"}))) == []
    assert validation.changes(old, first_form(modelReplicas="8")) == [
        "spec.modelReplicas cannot be changed while the job exists, unless it is suspended. Delete the job and create "
        "it again."
    ]
    assert validation.changes(old, first_form(workers=workers(2))) == [
        "spec.workers.replicas cannot be changed while the job exists, unless it is suspended. Delete the job and "
        "create it again."
    ]
    for new in (first_form(modelReplicas="8"), first_form(workers=workers(2))):
        assert validation.changes(first_form(suspend=True), new) == []


@pytest.mark.parametrize(
    ("ipujob", "host_network", "warned"),
    [
        (first_form(workers=workers(2)), True, True),
        (first_form(workers=workers(2)), False, False),
        (first_form(workers=workers(1)), True, False),
        (second_form(workersPerJobInstance="2"), True, False),  # it has no launcher
        (second_form(workersPerJobInstance="2", launcher={"command": ["sh", "-c", "mpiexec -n 2 a"]}), True, True),
        (second_form(workersPerJobInstance="2", launcher={"command": ["python3", "mpirunner.py"]}), True, False),
        (
            first_form(
                workers=workers(2), launcher={"command": ["mpirun", "--mca", "btl_tcp_if_include", "eno1", "a"]}
            ),
            True,
            False,
        ),
        (
            first_form(workers=workers(2, container={"env": [{"name": "OMPI_MCA_btl_tcp_if_exclude", "value": "lo"}]})),
            True,
            False,
        ),
    ],
)
def test_a_warning_about_the_network_interface(ipujob, host_network, warned):
    found = validation.warnings(ipujob, host_network=host_network)
    assert [each.split(".")[0] for each in found] == (["spec"] if warned else [])
