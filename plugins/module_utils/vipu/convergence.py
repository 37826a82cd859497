# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Convergence of objects of a controller, for the tasks of the modules that change them.

``resources`` declares the kinds of objects. ``transport`` reads and writes them with gRPC or Graphcore's command
lines. ``tasks`` has one module per task.
"""

from __future__ import annotations

import typing as t

from ..reconcile import (
    Action,
    Failure,
    Family,
    ItemError,
    Object,
    Report,
    Step,
    converge,
    plan,
)
from ..replan import Attempt, converge_with_others
from ..runner import TaskError
from .client import VipuError
from .options import Run
from .resources import PARTITION

STATE: dict[str, t.Any] = {"type": "str", "choices": ["present", "absent"], "default": "present"}
FORCE: dict[str, t.Any] = {"force": {"type": "bool", "default": False}}
RECREATE: dict[str, t.Any] = {"recreate": {"type": "bool", "default": False}}

_T = t.TypeVar("_T")


def converge_object(
    run: Run,
    family: Family,
    prepare: t.Callable[[Step], None] | None = None,
    complete: t.Callable[[Step], Step] | None = None,
) -> tuple[Step | None, Report]:
    """Plan and converge the one object that a module's options describe.

    The step is None for an object that is already absent. ``complete`` adds defaults to the plan. ``prepare`` runs
    before anything is written.
    """
    params = run.params
    desired: Object = {name: params[name] for name in (family.key, *(f.name for f in family.fields))}
    key = desired[family.key]

    def make_plan() -> list[Step]:
        actual = [item for item in run.transport.read(family.kind) if item[family.key] == key]
        if params["state"] == "absent":
            return plan(family, [], actual, absent=[key])
        actual = with_details(run, family, [desired], actual)
        steps = plan(family, [desired], actual, recreate=params.get("recreate", False))
        steps = [complete(step) for step in steps] if complete else steps
        if prepare and not run.check_mode:
            for step in steps:
                prepare(step)
        return steps

    steps, report = apply_plan(run, make_plan, params.get("force", False))
    return (steps[0] if steps else None), report


def with_details(run: Run, family: Family, desired: list[Object], actual: list[Object]) -> list[Object]:
    """Add all fields to compare to actual partitions. Add a warning for fields that the controller does not report."""
    desired_by_id = {item["id"]: item for item in desired} if family is PARTITION else {}
    incomplete = [
        item["id"]
        for item in actual
        if item["id"] in desired_by_id and family.unreported(desired_by_id[item["id"]], item)
    ]
    if not incomplete:
        return actual
    details = run.transport.partition_details(incomplete)
    complete = {item["id"]: {**item, **details.get(item["id"], {})} for item in actual}
    unknown: dict[str, list[str]] = {}
    for id in incomplete:
        names = family.unreported(desired_by_id[id], complete[id])
        if names:
            unknown.setdefault(", ".join(names), []).append("'%s'" % id)
    messages = (
        "Cannot compare %s of partition %s: the controller does not report it over this transport. "
        "Check it on the controller." % (names, ", ".join(ids))
        for names, ids in unknown.items()
    )
    # Another plan of the same task has the same warnings.
    run.warnings.extend(message for message in messages if message not in run.warnings)
    return list(complete.values())


def apply_plan(
    run: Run, make_plan: t.Callable[[], list[Step]], force: bool, validate_in_check_mode: bool = False
) -> tuple[list[Step], Report]:
    """Make and apply a plan. Return its steps and the report. Raises TaskError with the partial result after a failure.

    Other clients may write the same objects, see ``replan``. With ``validate_in_check_mode`` the controller validates
    the steps in check mode.
    """

    def validate(work: list[Step]) -> list[ItemError]:
        errors = run.transport.validate(work, force)
        if any(error.failure is Failure.REJECTED or error.unknown for error in errors):
            return errors
        run.warnings.extend(
            "This task fails unless an earlier task creates the missing object: %s" % error.message
            for error in errors
            if error.failure is Failure.MISSING
        )
        return []

    def write(work: list[Step]) -> list[ItemError]:
        return run.transport.write(work, force)

    validator = validate if validate_in_check_mode else None

    def attempt() -> Attempt:
        steps = make_plan()
        return Attempt(steps, lambda: (steps, converge(steps, write, run.check_mode, run.diff, validator)))

    steps, report = converge_with_others(attempt, run.diff)
    if report.failed:
        result = report.result()
        raise TaskError(result.pop("msg"), **result)
    return steps, report


def object_result(report: Report, **more: t.Any) -> Object:
    """Return the result of a module for one object."""
    result: Object = {"changed": report.changed, **more}
    if report.diff is not None:
        result["diff"] = report.diff
    return result


def single_result(run: Run, family: Family, step: Step | None, report: Report) -> Object:
    """Return the result with the current or predicted object, None after a removal."""
    item = step.after if step else None
    if step and step.action is Action.NONE:
        item = step.before
    elif step and item and not run.check_mode:
        item = next((other for other in run.transport.read(family.kind) if other[family.key] == step.key), item)
    return object_result(report, **{family.kind: item})


def call_after_write(changed: bool, follow_up: t.Callable[[], _T]) -> _T:
    """Call a function after a write. Its errors carry ``changed``, because the write remains."""
    try:
        return follow_up()
    except VipuError as error:
        raise TaskError(error.message, changed=changed, error_code=error.error_code) from None
    except TaskError as error:
        error.result.setdefault("changed", changed)
        raise
