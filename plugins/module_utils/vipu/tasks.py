# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that change things, as declarations on the engine."""

from __future__ import annotations

import typing as t

from ..reconcile import Action, Failure, Family, ItemError, Object, Report, Step, converge, nothing_done, plan
from ..runner import Task, TaskError
from .client import VipuError
from .options import VIPU, Run, connection
from .resources import AGENT, ALLOCATION, CLUSTER, OPTIONS, PARTITION, USER, carried_along
from .transport import Transport
from .userfile import check_writable, user_file, write_user_file
from .waiting import WAIT_OPTIONS, wait_active

_STATE: dict[str, t.Any] = {"type": "str", "choices": ["present", "absent"], "default": "present"}
_FORCE: dict[str, t.Any] = {"force": {"type": "bool", "default": False}}
_RECREATE: dict[str, t.Any] = {"recreate": {"type": "bool", "default": False}}

_T = t.TypeVar("_T")


def _single(run: Run, family: Family, prepare: t.Callable[[Step], None] | None = None) -> tuple[Step | None, Report]:
    """Plan and converge the one object that a module's options describe.

    The step is None for an object that is absent as it should be. ``prepare`` runs before anything is written.
    """
    params = run.params
    wanted: Object = {name: params[name] for name in (family.key, *(f.name for f in family.fields))}
    key = wanted[family.key]
    actual = [item for item in run.transport.read(family.kind) if item[family.key] == key]
    if params["state"] == "absent":
        steps = plan(family, [], actual, absent=[key])
    else:
        actual = _in_full(run, family, [wanted], actual)
        steps = plan(family, [wanted], actual, recreate=params.get("recreate", False))
    if prepare and not run.check_mode:
        for step in steps:
            prepare(step)
    return (steps[0] if steps else None), _converge(run, steps, params.get("force", False))


def _in_full(run: Run, family: Family, wanted: list[Object], actual: list[Object]) -> list[Object]:
    """The partitions that are there with all that they are compared by; what nobody tells is warned of."""
    asked = {item["id"]: item for item in wanted} if family is PARTITION else {}
    short = [item["id"] for item in actual if item["id"] in asked and family.untold(asked[item["id"]], item)]
    if not short:
        return actual
    details = run.transport.partition_details(short)
    told = {item["id"]: {**item, **details.get(item["id"], {})} for item in actual}
    unknown: dict[str, list[str]] = {}
    for id in short:
        names = family.untold(asked[id], told[id])
        if names:
            unknown.setdefault(", ".join(names), []).append("'%s'" % id)
    run.warnings.extend(
        "Not compared, because the controller does not tell it this way: %s of partition %s." % (names, ", ".join(ids))
        for names, ids in unknown.items()
    )
    return list(told.values())


def _converge(run: Run, steps: list[Step], force: bool, ask: bool = False) -> Report:
    """Carry out the steps; raises TaskError with what was done when anything failed.

    With ``ask`` the controller says in check mode what it would refuse.
    """

    def foretell(work: list[Step]) -> list[ItemError]:
        errors = run.transport.foretell(work, force)
        if any(error.failure is Failure.REFUSED for error in errors):
            return errors
        run.warnings.extend(
            "Unless a task before this one makes what is missing: %s" % error.sentence
            for error in errors
            if error.failure is Failure.MISSING
        )
        return []

    def write(work: list[Step]) -> list[ItemError]:
        return run.transport.write(work, force)

    report = converge(steps, write, run.check_mode, run.diff, foretell if ask else None)
    if report.failed:
        result = report.result()
        raise TaskError(result.pop("msg"), **result)
    return report


def _result(report: Report, **more: t.Any) -> Object:
    """The result of a singular module."""
    result: Object = {"changed": report.changed, **more}
    if report.diff is not None:
        result["diff"] = report.diff
    return result


def _single_result(run: Run, family: Family, step: Step | None, report: Report) -> Object:
    """The result with the object as it is now, or as it would be; None when it is gone."""
    item = step.after if step else None
    if step and step.action is Action.NONE:
        item = step.before
    elif step and item and not run.check_mode:
        item = next((other for other in run.transport.read(family.kind) if other[family.key] == step.key), item)
    return _result(report, **{family.kind: item})


def _after(changed: bool, follow_up: t.Callable[[], _T]) -> _T:
    """What follows a write: when it fails, the task has changed something all the same."""
    try:
        return follow_up()
    except VipuError as error:
        raise TaskError(error.sentence, changed=changed) from None
    except TaskError as error:
        error.result.setdefault("changed", changed)
        raise


def _declare(family: Family, *more: dict[str, t.Any], **constraints: t.Any) -> Task[Transport]:
    options = {**OPTIONS[family.kind], "state": _STATE}
    for group in more:
        options.update(group)

    def run(run: Run) -> Object:
        step, report = _single(run, family)
        return _after(report.changed, lambda: _single_result(run, family, step, report))

    return Task(VIPU, options, run, constraints)


VIPU_AGENT = _declare(AGENT, _FORCE, required_if=[("state", "present", ("host",))])
VIPU_CLUSTER = _declare(CLUSTER, _FORCE, required_if=[("state", "present", ("agents",))])
VIPU_ALLOCATION = _declare(
    ALLOCATION,
    _FORCE,
    _RECREATE,
    required_if=[("state", "present", ("cluster",)), ("state", "present", ("size", "agents"), True)],
    mutually_exclusive=[("size", "agents")],
)


def _partition(run: Run) -> Object:
    if run.params["state"] == "reset":
        return _reset(run)
    step, report = _single(run, PARTITION)
    if step and step.wanted and run.params["wait"] and not run.check_mode:
        seen = [step.before] if step.before and not report.changed else None
        item = _after(report.changed, lambda: wait_active(run, [step.key], seen)[step.key])
        return _result(report, partition=item)
    return _after(report.changed, lambda: _single_result(run, PARTITION, step, report))


def _reset(run: Run) -> Object:
    """A reset is an act, not a state to be in: every run resets, and so every run changes."""
    id = run.params["id"]
    before = next((item for item in run.transport.read("partition") if item["id"] == id), None)
    if before is None:
        raise TaskError("Cannot reset partition '%s': it does not exist; create it with state present." % id)
    result: Object = {"changed": True, "partition": before}
    if run.diff:
        result["diff"] = {"before": {"state": before.get("state")}, "after": {"state": "reset"}}
    if not run.check_mode:
        run.transport.reset_partition(id, bool(run.params["relocatable"]))
        if run.params["wait"]:
            result["partition"] = _after(True, lambda: wait_active(run, [id])[id])
    return result


VIPU_PARTITION = Task(
    VIPU,
    {
        **OPTIONS["partition"],
        "state": {"type": "str", "choices": ["present", "absent", "reset"], "default": "present"},
        **WAIT_OPTIONS,
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
    """A new user's key is told once, so there has to be a place for it before the user is made."""
    file = user_file(run.params["config_dest"], run.params["id"])

    def prepare(step: Step) -> None:
        if step.action is Action.CREATE and file:
            check_writable(file)

    step, report = _single(run, USER, prepare)
    if step and step.action is Action.CREATE and file and not run.check_mode:
        key = run.transport.access_key(step.key)
        _after(True, lambda: write_user_file(file, connection(run.params), step.key, key))
    result = _after(report.changed, lambda: _single_result(run, USER, step, report))
    return {**result, "config_dest": str(file)} if file else result


VIPU_USER = Task(
    VIPU,
    {**OPTIONS["user"], "state": _STATE, "config_dest": {"type": "path"}},
    _user,
    {"required_if": [("state", "present", ("config_dest",))]},
)


_LISTED = (AGENT, CLUSTER, ALLOCATION, PARTITION)


def _pod(run: Run) -> Object:
    """All kinds at once: one read per kind that is concerned, one plan, one batch."""
    params = run.params
    for name in params["prune"]:
        if params[name] is None:  # left out, or lost in a template: too little to empty a rack on
            raise TaskError(
                "Cannot prune %s without a list of those that shall stay: give %s, [] for none." % (name, name)
            )
    concerned = [f for f in _LISTED if params[f.plural] is not None]
    seen = run.transport.read_all([family.kind for family in concerned])
    steps: list[Step] = []
    for family in concerned:
        owned: t.Callable[[Object], bool] | None = (lambda item: True) if family.plural in params["prune"] else None
        wanted = params[family.plural] or []
        seen[family.kind] = _in_full(run, family, wanted, seen[family.kind])
        steps += plan(family, wanted, seen[family.kind], prune=owned, recreate=params["recreate"])
    if params["force"]:
        steps = carried_along(steps, seen)
    report = _converge(run, steps, params["force"], params["validate"])
    result = {**{family.plural: nothing_done() for family in concerned}, **report.result()}
    if params["wait"] and params["partitions"] and not run.check_mode:
        ids = [item["id"] for item in params["partitions"]]
        unchanged = None if report.changed else seen[PARTITION.kind]
        active = _after(report.changed, lambda: wait_active(run, ids, unchanged))
        result["partition_states"] = {id: active[id]["state"] for id in ids}
    return result


def _elements(family: Family) -> dict[str, t.Any]:
    """The options of a kind as elements of a list; what a new object needs, the controller asks for."""
    return {"type": "list", "elements": "dict", "options": OPTIONS[family.kind]}


VIPU_POD = Task(
    VIPU,
    {
        **{family.plural: _elements(family) for family in _LISTED},
        "prune": {"type": "list", "elements": "str", "choices": [f.plural for f in _LISTED], "default": []},
        "validate": {"type": "bool", "default": True},
        **WAIT_OPTIONS,
        **_FORCE,
        **_RECREATE,
    },
    _pod,
)
