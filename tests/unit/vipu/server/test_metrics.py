# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of records, agents and cluster tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from openipu.vipu.cluster_test.model import Failure, FailureKind, Test, Verdict
from openipu.vipu.cluster_test.results import Results, Run, RunState
from openipu.vipu.domain import service
from openipu.vipu.domain.model import Certificate, Cluster, Put, ReadyState, Role, User
from openipu.vipu.domain.state import State
from openipu.vipu.fleet.status import AgentState, AgentStatus
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Samples
from openipu.vipu.server.metrics import _METRICS, Records, add_certificates, add_records, add_tests
from tests.unit.vipu.domain.rules_support import partition, pod

CLUSTER = Cluster("cl0", ("ag01", "ag02"))


def values_of(samples: Samples) -> dict[str, dict[tuple[str, ...], float]]:
    """Return values by metric name and label values, the labels in the order of the catalog."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in samples.families():
        for sample in family.samples:
            labels = tuple(sample.labels[label] for label in CONTROLLER[sample.name].labels)
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def records(state: State, *down: str, losses: int = 0) -> Any:
    samples = Samples(CONTROLLER, _METRICS)
    statuses = {
        agent: AgentStatus(AgentState.DOWN if agent in down else AgentState.UP, losses=losses) for agent in state.agents
    }
    add_records(samples, Records.of(state), statuses)
    return values_of(samples)


def test_an_empty_controller_exports_zeros() -> None:
    found = records(State())
    assert found["vipu_records"] == {(kind,): 0 for kind in ("agent", "cluster", "allocation", "partition", "user")}
    assert found["vipu_agents"] == {("up",): 0, ("down",): 0, ("unknown",): 0}
    assert found["vipu_partitions"] == {("active",): 0, ("pending",): 0, ("error",): 0}
    assert "vipu_cluster_ipus" not in found


def test_machines_out_of_service_are_not_free() -> None:
    state = pod(4, allocations={"a1": 4})
    partition(state, "p1", 2)
    state.apply(service.set_service(state, "ag01", True, "fan"))
    state.apply(service.set_service(state, "ag04", True, ""))
    found = records(state)
    assert found["vipu_agent_in_service"] == {("ag01",): 0, ("ag02",): 1, ("ag03",): 1, ("ag04",): 0}
    of = ("cl0", "a1")
    assert found["vipu_allocation_ipus"] == {of: 16}
    assert found["vipu_allocation_used_ipus"] == {of: 2}
    assert found["vipu_allocation_free_ipus"] == {of: 8}
    assert found["vipu_allocation_out_of_service_ipus"] == {of: 6}
    assert found["vipu_allocation_largest_partition_ipus"] == {of: 8}


def test_ipus_of_clusters_and_allocations() -> None:
    state = pod(8, ilds=2, allocations={"a1": 4, "a2": 2})
    partition(state, "p1", 8)
    partition(state, "p2", 1, "a2")
    found = records(state, "ag01", "ag06", "ag08", losses=3)
    of = ("cl0",)
    assert found["vipu_cluster_ipus"] == {of: 32}
    assert found["vipu_cluster_allocated_ipus"] == {of: 24}
    assert found["vipu_cluster_used_ipus"] == {of: 9}
    assert found["vipu_cluster_unreachable_ipus"] == {of: 12}
    assert found["vipu_allocation_ipus"] == {("cl0", "a1"): 16, ("cl0", "a2"): 8}
    assert found["vipu_allocation_used_ipus"] == {("cl0", "a1"): 8, ("cl0", "a2"): 1}
    assert found["vipu_allocation_free_ipus"] == {("cl0", "a1"): 8, ("cl0", "a2"): 7}
    assert found["vipu_allocation_unreachable_ipus"] == {("cl0", "a1"): 4, ("cl0", "a2"): 4}
    # Seven IPUs are free, but the used one is in the middle of a machine.
    assert found["vipu_allocation_largest_partition_ipus"] == {("cl0", "a1"): 8, ("cl0", "a2"): 4}
    assert found["vipu_allocation_partitions"] == {("cl0", "a1"): 1, ("cl0", "a2"): 1}
    assert found["vipu_agents"] == {("up",): 5, ("down",): 3, ("unknown",): 0}
    assert found["vipu_agent_up"][("ag01",)] == 0
    assert found["vipu_agent_up"][("ag02",)] == 1
    assert found["vipu_agent_losses_total"][("ag01",)] == 3
    assert found["vipu_agent_info"][("ag01", "10.1.2.1", "8080", "cl0", "a1")] == 1
    assert found["vipu_agent_info"][("ag08", "10.1.2.8", "8080", "cl0", "")] == 1


def test_only_partitions_in_error_are_named() -> None:
    state = pod(2)
    for number in range(4):
        partition(state, f"p{number}", 1)
    state.apply([Put(replace(state.partitions["p1"], ready=ReadyState.ERROR))])
    found = records(state)
    assert found["vipu_partition_error"] == {("p1", "cl0", "a1"): 1}
    assert found["vipu_partitions"] == {("active",): 0, ("pending",): 3, ("error",): 1}
    assert found["vipu_partition_operations"][("creating",)] == 4
    assert not any("p0" in labels for values in found.values() for labels in values)


def run(*verdicts: Verdict, state: RunState = RunState.FINISHED) -> Run:
    return Run("r", CLUSTER, tuple(verdict.test for verdict in verdicts), (), 1.0, state, verdicts, None, 2.0)


def of_tests(results: dict[str, Results], clusters: list[Cluster], cluster_under_test: str = "") -> Any:
    samples = Samples(CONTROLLER, _METRICS)
    add_tests(samples, clusters, cluster_under_test, results)
    return values_of(samples)


def test_metrics_of_the_last_run_of_each_test() -> None:
    wrong = [Failure(FailureKind.NO_CABLE, "One."), Failure(FailureKind.NO_CABLE, "Two.")]
    cabling = Verdict(Test.CABLING, 62, 64, (), tuple(wrong), duration=0.5)
    links = Verdict(Test.IPU_LINK, 0, 0, (), skipped=True, skipped_because=Test.CABLING)
    known = Results(CLUSTER).with_run(run(cabling, links))
    found = of_tests({"cl0": known}, [CLUSTER], "cl0")
    assert found["vipu_cluster_test_running"] == {("cl0",): 1}
    assert found["vipu_cluster_test_ok"] == {("cl0", "Cabling"): 0}
    assert found["vipu_cluster_test_checks"] == {("cl0", "Cabling"): 64}
    assert found["vipu_cluster_test_checks_passed"] == {("cl0", "Cabling"): 62}
    assert found["vipu_cluster_test_failures"] == {("cl0", "Cabling", "no_cable"): 2}
    assert found["vipu_cluster_test_duration_seconds"] == {("cl0", "Cabling"): 0.5}
    assert found["vipu_cluster_test_last_run_timestamp_seconds"] == {("cl0",): 2.0}
    assert found["vipu_cluster_test_runs_total"] == {("cl0", "failed"): 1}

    # A run of another test does not change the results of this one.
    version = Verdict(Test.VERSION, 2, 2, ())
    known = known.with_run(run(version)).with_run(run(state=RunState.STOPPED)).with_run(run(version))
    found = of_tests({"cl0": known}, [CLUSTER])
    assert found["vipu_cluster_test_ok"] == {("cl0", "Cabling"): 0, ("cl0", "Version"): 1}
    assert found["vipu_cluster_test_runs_total"] == {
        ("cl0", "failed"): 1,
        ("cl0", "passed"): 2,
        ("cl0", "stopped"): 1,
    }
    known = known.with_run(run(replace(cabling, passed=64, failures=())))
    assert "vipu_cluster_test_failures" not in of_tests({"cl0": known}, [CLUSTER])


def test_results_of_an_earlier_cluster_of_that_name_are_not_exported() -> None:
    known = Results(CLUSTER).with_run(run(Verdict(Test.VERSION, 2, 2, ())))
    other = replace(CLUSTER, agents=("ag03", "ag04"))
    found = of_tests({"cl0": known, "gone": known}, [other])
    assert found == {"vipu_cluster_test_running": {("cl0",): 0}}


def test_users_are_counted_by_the_state_of_their_certificates() -> None:
    """The certificate counts that expires last. Names of users are not in metrics."""
    day, now = 86_400, 1_000_000_000
    ends = {"a": [15], "b": [13], "c": [13, 15], "d": [-1], "e": [], "f": [-1, 13]}
    users = [
        User(id, Role.USER, (), "hash", "salt", tuple(Certificate(f"{id}{n}", "1", now + n * day) for n in days))
        for id, days in ends.items()
    ]
    users.append(User("g", Role.USER, (), "hash", "salt", (Certificate("g", "1", now + 99 * day, revoked=True),)))
    samples = Samples(CONTROLLER, _METRICS)
    add_certificates(samples, users, now)
    assert values_of(samples)["vipu_user_certificates"] == {
        ("valid",): 2,
        ("expiring",): 2,
        ("expired",): 1,
        ("none",): 2,
    }
