# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that change things, as declarations on the engine."""

from __future__ import annotations

import time
import typing as t
from pathlib import Path

from ..reconcile import Action, Family, Mode, Object, Report, Step, converge, plan
from .ipuof import write_private
from .options import connection
from .resources import AGENT, ALLOCATION, CLUSTER, FAMILIES, OPTIONS, PARTITION, USER
from .runner import Run, Task, TaskError

_STATE: dict[str, t.Any] = {"type": "str", "choices": ["present", "absent"], "default": "present"}
_WAIT: dict[str, t.Any] = {
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "float", "default": 120.0},
}
_FORCE: dict[str, t.Any] = {"force": {"type": "bool", "default": False}}
_RECREATE: dict[str, t.Any] = {"recreate": {"type": "bool", "default": False}}
_SETTLED = ("ACTIVE", "ERROR", "REMOVED")


def _single(run: Run, family: Family) -> tuple[Step | None, Report]:
    """Plan and converge the one object that a module's options describe."""
    params = run.params
    wanted: Object = {name: params[name] for name in (family.key, *(f.name for f in family.fields))}
    key = wanted[family.key]
    actual = [item for item in run.transport.read(family.kind) if item[family.key] == key]
    if params["state"] == "absent":
        steps = plan(family, [], actual, absent=[key])
    else:
        steps = plan(family, [wanted], actual, recreate=params.get("recreate", False))
    report = converge(
        steps, lambda work: run.transport.write(work, params.get("force", False)), run.check_mode, run.diff
    )
    if report.failed:
        raise TaskError(report.message, diff=report.diff or {}) if run.diff else TaskError(report.message)
    return (steps[0] if steps else None), report


def _single_result(run: Run, family: Family, step: Step | None, report: Report) -> Object:
    """The result of a singular module: the object as it is now, or as it would be."""
    item = step.after if step else None
    if item is not None and report.changed and not run.check_mode:
        item = next((o for o in run.transport.read(family.kind) if o[family.key] == step.key), item)  # type: ignore[union-attr]
    elif step is not None and step.action is Action.NONE:
        item = step.before
    result: Object = {"changed": report.changed, family.kind: item}
    if report.diff is not None:
        result["diff"] = report.diff
    return result


def _declare(family: Family, *more: dict[str, t.Any], **constraints: t.Any) -> Task:
    options = {**OPTIONS[family.kind], "state": _STATE}
    for group in more:
        options.update(group)

    def run(run: Run) -> Object:
        return _single_result(run, family, *_single(run, family))

    return Task(options, run, constraints)


VIPU_AGENT = _declare(AGENT, _FORCE, required_if=[("state", "present", ("host",))])
VIPU_CLUSTER = _declare(CLUSTER, _FORCE, required_if=[("state", "present", ("agents",))])
VIPU_ALLOCATION = _declare(
    ALLOCATION,
    _FORCE,
    _RECREATE,
    required_if=[("state", "present", ("cluster",)), ("state", "present", ("size", "agents"), True)],
    mutually_exclusive=[("size", "agents")],
)


def _wait_active(run: Run, ids: list[str]) -> dict[str, Object]:
    """Wait until partitions are ACTIVE; raises TaskError with their last state when one does not become so."""
    deadline, pause = time.monotonic() + run.params["wait_timeout"], 0.005
    while True:
        listed = {item["id"]: item for item in run.transport.read("partition")}
        waiting = [id for id in ids if listed.get(id, {}).get("state") not in _SETTLED]
        left = deadline - time.monotonic()
        if not waiting or left <= 0:
            break
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 1.0)
    bad = [id for id in ids if listed.get(id, {}).get("state") != "ACTIVE"]
    if not bad:
        return listed
    last = {id: run.transport.partition_status(id) if id in listed else {"id": id, "state": "REMOVED"} for id in bad}
    raise TaskError(
        " ".join(_not_active(status, run.params["wait_timeout"]) for status in last.values()), partitions=last
    )


def _not_active(status: Object, timeout: float) -> str:
    if status["state"] == "ERROR":
        reason = " ".join(status["errors"]) or "no reason was given."
        return "Partition '%s' is in ERROR: %s Mend the cause and use state reset." % (status["id"], reason)
    if status["state"] == "REMOVED":
        return "Partition '%s' was removed by somebody else meanwhile." % status["id"]
    return "Partition '%s' is still %s (%s) after %g seconds: allow more with wait_timeout." % (
        status["id"],
        status["state"],
        status.get("operation", ""),
        timeout,
    )


def _partition(run: Run) -> Object:
    params = run.params
    id = params["id"]
    if params["state"] == "reset":
        return _reset(run, id)
    step, report = _single(run, PARTITION)
    if params["state"] == "present" and params["wait"] and not run.check_mode:
        try:
            _wait_active(run, [id])
        except TaskError as error:
            error.result["changed"] = report.changed
            raise
    return _single_result(run, PARTITION, step, report)


def _reset(run: Run, id: str) -> Object:
    """A reset is an act, not a state to be in: every run resets, and so every run changes."""
    before = next((item for item in run.transport.read("partition") if item["id"] == id), None)
    if before is None:
        raise TaskError("Cannot reset partition '%s': it does not exist; create it with state present." % id)
    result: Object = {"changed": True, "partition": before}
    if run.diff:
        result["diff"] = {"before": {"state": before.get("state")}, "after": {"state": "ACTIVE"}}
    if run.check_mode:
        return result
    run.transport.reset_partition(id, bool(run.params["relocatable"]))
    if run.params["wait"]:
        try:
            result["partition"] = _wait_active(run, [id])[id]
        except TaskError as error:
            error.result["changed"] = True
            raise
    return result


VIPU_PARTITION = Task(
    {
        **OPTIONS["partition"],
        "state": {"type": "str", "choices": ["present", "absent", "reset"], "default": "present"},
        **_WAIT,
        **_FORCE,
        **_RECREATE,
    },
    _partition,
    {
        "required_if": [
            ("state", "present", ("size", "ipus"), True),
            ("state", "present", ("allocation", "cluster"), True),
        ],
        "required_by": {"ipus": "cluster"},
    },
)


def _user(run: Run) -> Object:
    step, report = _single(run, USER)
    result = _single_result(run, USER, step, report)
    target = run.params["config_dest"]
    if target:
        result["config_dest"] = target
        key = run.transport.access_key(run.params["id"])
        if key:
            where = connection(run.params)
            lines = {
                "api-host": where.host,
                "api-port": str(where.port),
                "api-user-id": run.params["id"],
                "api-access-key": key,
            }
            write_private(Path(target), "".join('%s="%s"\n' % line for line in lines.items()))
    return result


VIPU_USER = Task(
    {**OPTIONS["user"], "state": _STATE, **_FORCE, "config_dest": {"type": "path"}},
    _user,
    {"required_if": [("state", "present", ("config_dest",))]},
)


_LISTED = (AGENT, CLUSTER, ALLOCATION, PARTITION)


def _pod(run: Run) -> Object:
    """All kinds at once: one read per kind that is concerned, one plan, one batch."""
    params = run.params
    prune = set(params["prune"])
    steps: list[Step] = []
    for family in _LISTED:
        wanted = params[family.plural]
        if wanted is None and family.plural not in prune:
            continue
        steps += plan(
            family,
            wanted or [],
            run.transport.read(family.kind),
            prune=(lambda item: True) if family.plural in prune else None,
            recreate=params["recreate"],
        )
    report = converge(steps, lambda work: run.transport.write(work, params["force"]), run.check_mode, run.diff)
    result = report.result()
    if report.failed:
        raise TaskError(result.pop("msg"), **result)
    if params["wait"] and params["partitions"] and not run.check_mode:
        try:
            listed = _wait_active(run, [item["id"] for item in params["partitions"]])
        except TaskError as error:
            error.result["changed"] = report.changed
            raise
        result["partition_states"] = {item["id"]: listed[item["id"]]["state"] for item in params["partitions"]}
    return result


def _elements(family: Family) -> dict[str, t.Any]:
    """The options of a kind as elements of a list; what a new object needs, the controller asks for."""
    return {"type": "list", "elements": "dict", "options": OPTIONS[family.kind]}


VIPU_POD = Task(
    {
        **{family.plural: _elements(family) for family in _LISTED},
        "prune": {"type": "list", "elements": "str", "choices": [f.plural for f in _LISTED], "default": []},
        **_WAIT,
        **_FORCE,
        **_RECREATE,
    },
    _pod,
)

# Kept together so that tests can walk all of them.
KINDS = {family.kind: family for family in FAMILIES}
WRITE_ONLY = {family.kind: [f.name for f in family.fields if f.mode is Mode.WRITE_ONLY] for family in FAMILIES}
