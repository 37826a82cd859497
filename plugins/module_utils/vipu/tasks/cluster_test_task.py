# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_cluster_test: run cluster tests. As a gate, it tests each state of a cluster only once."""

from __future__ import annotations

import time
import typing as t

from ...reconcile import Object
from ...runner import Task, TaskError
from ..cluster_test import table
from ..cluster_test.failures import failure_message, flat, shortened
from ..convergence import call_after_write
from ..names import CLUSTER_TEST
from ..options import VIPU, Run, connection

_MAX_POLL_SECONDS = 20.0  # that one call waits for new results


def _cluster_test(run: Run) -> Object:
    params = run.params
    if params["state"] == "stopped":
        return _stop(run)
    tests = [test for test in CLUSTER_TEST.choices if test in (params["tests"] or table.DEFAULT)]
    if not params["force"]:
        skipped = _skipped_result(run, tests)
        if skipped:
            return skipped
    if run.check_mode:
        return {"changed": True, "would_run": tests}
    started = run.transport.start_test(params["cluster"], params["tests"] or [])
    if params["state"] == "started":
        return {"changed": True, "run": started}
    found = _wait(run, started, tests)
    result: Object = {"changed": True, "run": found, "ok": found["ok"], "failures": flat(found)}
    disturbing = [item for item in found["results"] if item["disturbs"]]
    if disturbing:
        run.warnings.append(
            "Skipped tests that would interrupt partitions of cluster '%s' (%s): %s. To run such a test anyway, select "
            "it alone."
            % (params["cluster"], shortened(disturbing[0]["disturbs"]), ", ".join(item["test"] for item in disturbing))
        )
    if not found["ok"]:
        message = failure_message(found, params["cluster"])
        if params["fail_on_failure"]:
            raise TaskError(message, **result)
        result["msg"] = message
    return result


def _skipped_result(run: Run, tests: t.Sequence[str]) -> Object | None:
    """Return the result when the tests need not or must not run, None when they have to."""
    id = run.params["cluster"]
    seen = run.transport.read_all(["cluster", "allocation", "partition"])
    cluster = next((item for item in seen["cluster"] if item["id"] == id), None)
    if cluster is None:
        return None
    last = run.transport.test_run()
    nothing: Object = {"changed": False, "run": last, "failures": []}
    if _covers(last, cluster, tests):
        skipped = "Cluster '%s' passed these tests and has not changed since." % id
        return {**nothing, "ok": True, "skipped_reason": skipped}
    failed = last["state"] == "finished" and last["cluster"] == id and not last["ok"]
    if failed or not table.DISTURBING.intersection(tests):
        return None
    # Some releases list only the agents of allocations and only the cluster of partitions.
    agents = set(cluster.get("agents") or ())
    allocations = {item["id"] for item in seen["allocation"] if agents.intersection(item.get("agents") or ())}
    partitions = [
        item["id"] for item in seen["partition"] if item.get("allocation") in allocations or item.get("cluster") == id
    ]
    if partitions:
        reason = "Cluster '%s' has partitions (%s). Set force to test it anyway." % (
            id,
            shortened(["'%s'" % partition for partition in sorted(partitions)]),
        )
        return {**nothing, "run": last if last["cluster"] == id else None, "ok": None, "skipped_reason": reason}
    return None


def _covers(last: Object, cluster: Object, tests: t.Sequence[str]) -> bool:
    """Return whether the last run passed these tests on the cluster in its current state.

    The command line does not report the former state of the cluster, so there the result is always False.
    """
    if not last["ok"] or last["cluster"] != cluster["id"]:
        return False
    same = all(last[name] == cluster.get(name) for name in ("agents", "num_ilds", "topology"))
    passed = {result["test"] for result in last["results"] if result["ok"] and not result["disturbs"]}
    return same and passed.issuperset(tests)


def _wait(run: Run, started: Object, tests: t.Sequence[str]) -> Object:
    """Wait for the end of the run and return it. Raises TaskError after the timeout or when there are no results.

    The results are in the memory of the leader. When another controller leads, the tests are started again.
    """
    id, timeout = run.params["cluster"], run.params["wait_timeout"]
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        found = run.transport.test_run(len(CLUSTER_TEST.choices), max(0.0, min(left, _MAX_POLL_SECONDS)))
        if found["state"] == "none" and left > 0 and len(connection(run.params).addresses) > 1:
            run.warnings.append(
                "Started the test of cluster '%s' again: the results were in the memory of a controller that no longer "
                "leads." % id
            )
            started = call_after_write(True, lambda: run.transport.start_test(id, run.params["tests"] or []))
            continue
        if found["run_id"] != started["run_id"]:
            break
        if found["state"] != "running":
            break
        if left <= 0:
            raise TaskError(
                "Cannot wait for the test of cluster '%s': it is still running after %g seconds. Check it with "
                "vipu_cluster_test_info, or increase wait_timeout." % (id, timeout),
                changed=True,
                run=found,
            )
    if found["run_id"] != started["run_id"] or (found["state"] == "finished" and found["requested"] != list(tests)):
        raise TaskError(
            "Cannot get the results of the test of cluster '%s': another test was started. Test again." % id,
            changed=True,
            run=found,
        )
    if found["state"] != "finished" or found["cluster"] not in (id, None):
        cause = found["error"] or "it was stopped, or the controller was restarted"
        raise TaskError(
            "Cannot get the results of the test of cluster '%s': %s. Test again." % (id, cause.rstrip(".")),
            changed=True,
            run=found,
        )
    return found


def _stop(run: Run) -> Object:
    last = run.transport.test_run()
    id = run.params["cluster"]
    running = last["state"] == "running" and id in (None, last["cluster"])
    if running and not run.check_mode:
        run.transport.stop_test(last)
        last = run.transport.test_run()
    return {"changed": running, "run": last}


VIPU_CLUSTER_TEST = Task(
    VIPU,
    {
        "cluster": {"type": "str"},
        "tests": {"type": "list", "elements": "str", "choices": CLUSTER_TEST.choices},
        "state": {"type": "str", "choices": ["tested", "started", "stopped"], "default": "tested"},
        "force": {"type": "bool", "default": False},
        "fail_on_failure": {"type": "bool", "default": True},
        "wait_timeout": {"type": "float", "default": 1800.0},
    },
    _cluster_test,
    {"required_if": [("state", "tested", ("cluster",)), ("state", "started", ("cluster",))]},
)
