# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster tests as a gate: they run once for a cluster as it is, and fail the task when something is wrong."""

from __future__ import annotations

import time
import typing as t

from ..reconcile import Object
from ..runner import Task, TaskError
from . import test_table
from .names import CLUSTER_TEST
from .options import VIPU, Run

_LONGEST_LOOK = 20.0  # seconds that one call waits for news
_TOLD = 3  # failures of a test that a sentence names


def _cluster_test(run: Run) -> Object:
    params = run.params
    if params["state"] == "stopped":
        return _stop(run)
    tests = [test for test in CLUSTER_TEST.choices if test in (params["tests"] or test_table.DEFAULT)]
    if not params["force"]:
        settled = _settled(run, tests)
        if settled:
            return settled
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
            "Not tested, since it would disturb partitions of cluster '%s' (%s): %s. Choose one of these tests alone "
            "to run it in any case."
            % (params["cluster"], _some(disturbing[0]["disturbs"]), ", ".join(item["test"] for item in disturbing))
        )
    if not found["ok"] and params["fail_on_failure"]:
        raise TaskError(sentence(found), **result)
    return result


def _settled(run: Run, tests: t.Sequence[str]) -> Object | None:
    """The result of a gate that need not open again, None for one that must."""
    id = run.params["cluster"]
    seen = run.transport.read_all(["cluster", "allocation", "partition"])
    cluster = next((item for item in seen["cluster"] if item["id"] == id), None)
    if cluster is None:
        return None
    last = run.transport.test_run()
    nothing: Object = {"changed": False, "run": last, "failures": []}
    if _covers(last, cluster, tests):
        reason = "Cluster '%s' passed these tests, and is the same since." % id
        return {**nothing, "ok": True, "skipped_reason": reason}
    failed = last["state"] == "finished" and last["cluster"] == id and not last["ok"]
    if failed or not test_table.DISTURBING.intersection(tests):
        return None
    # Some listings of allocations tell the agents only, and some of partitions the cluster only.
    agents = set(cluster.get("agents") or ())
    allocations = {item["id"] for item in seen["allocation"] if agents.intersection(item.get("agents") or ())}
    partitions = [
        item["id"] for item in seen["partition"] if item.get("allocation") in allocations or item.get("cluster") == id
    ]
    if partitions:
        reason = "Cluster '%s' has partitions already (%s): set force to test it all the same." % (
            id,
            _some(["'%s'" % partition for partition in sorted(partitions)]),
        )
        # Whether anything is wrong is not known.
        return {**nothing, "run": last if last["cluster"] == id else None, "ok": None, "skipped_reason": reason}
    return None


def _covers(last: Object, cluster: Object, tests: t.Sequence[str]) -> bool:
    """Whether the last run passed these tests, on the cluster as it is now.

    The command line does not tell what the cluster was like, so there it is tested again.
    """
    if not last["ok"] or last["cluster"] != cluster["id"]:
        return False
    same = all(last[name] == cluster.get(name) for name in ("agents", "num_ilds", "topology"))
    passed = {result["test"] for result in last["results"] if result["ok"] and not result["disturbs"]}
    return same and passed.issuperset(tests)


def _wait(run: Run, started: Object, tests: t.Sequence[str]) -> Object:
    """The run when it is over. Raises TaskError with what is known when it is not in time, or has no results."""
    id, timeout = run.params["cluster"], run.params["wait_timeout"]
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        found = run.transport.test_run(len(CLUSTER_TEST.choices), max(0.0, min(left, _LONGEST_LOOK)))
        if found["run_id"] != started["run_id"]:
            break
        if found["state"] != "running":
            break
        if left <= 0:
            raise TaskError(
                "The test of cluster '%s' is not over after %g seconds, and goes on: look at it with "
                "vipu_cluster_test_info, or allow more with wait_timeout." % (id, timeout),
                changed=True,
                run=found,
            )
    if found["run_id"] != started["run_id"] or (found["state"] == "finished" and found["asked"] != list(tests)):
        raise TaskError(
            "The results of the test of cluster '%s' are lost, somebody has started another since: test again." % id,
            changed=True,
            run=found,
        )
    if found["state"] != "finished" or found["cluster"] not in (id, None):
        what = found["error"] or "it was stopped, or the controller was started anew"
        raise TaskError(
            "The test of cluster '%s' has no results: %s." % (id, what.rstrip(".")), changed=True, run=found
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


def flat(found: Object) -> list[Object]:
    """All failures of a run, each with its test."""
    return [{"test": result["test"], **failure} for result in found["results"] for failure in result["failures"]]


def sentence(found: Object) -> str:
    """What is wrong, in one sentence."""
    told = []
    for result in found["results"]:
        if not result["ok"] and not result["skipped"]:
            # A machine that does not answer says enough; what could not be tested because of it is in the list.
            causes = [each for each in result["failures"] if each["kind"] != "agent_unreachable" or not each["a"]]
            names = list(dict.fromkeys(map(_named, causes or result["failures"])))
            told.append("%s %d/%d (%s)" % (result["test"], result["passed"], result["total"], _some(names)))
    return "Cluster '%s' did not pass its tests: %s." % (found["cluster"], "; ".join(told))


def _named(failure: Object) -> str:
    """A failure in a few words: the cable by both ends, or the machine."""
    what = {
        "no_cable": "no cable",
        "wrong_port": "wrong port",
        "no_sync": "no sync",
        "link_down": "link down",
        "corrected_errors": "%s corrected errors" % failure["corrected_errors"],
        "agent_unreachable": "agent does not answer",
    }.get(failure["kind"])
    a, b = failure["a"], failure["b"]
    if a and b:
        # The test says which ports are meant, but for GW-Links, which more than one test sees.
        port = "GW-Link port" if a["kind"] == "GW-Link" else "port"
        return "%s %s %s <--> %s %s %s: %s" % (a["agent"], port, a["port"], b["agent"], port, b["port"], what)
    if failure["kind"] == "agent_unreachable":
        return "%s: %s" % (failure["agent"], what)
    if failure["link"]:
        return "%s %s: %s" % (failure["agent"], failure["link"], what)
    return str(failure["reason"]).rstrip(".")


def _some(names: t.Sequence[str]) -> str:
    more = " and %d more" % (len(names) - _TOLD) if len(names) > _TOLD else ""
    return ", ".join(names[:_TOLD]) + more


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


def _info(run: Run) -> Object:
    last = run.transport.test_run()
    return {"changed": False, "run": None if last["state"] == "none" else last, "failures": flat(last)}


VIPU_CLUSTER_TEST_INFO = Task(VIPU, {}, _info)
