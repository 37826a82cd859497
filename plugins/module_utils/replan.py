# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Convergence while other clients write the same objects, or without a response: read again and compare.

Pure, except for the functions that the caller passes. All families with creations that can collide use it.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from .reconcile import Action, Failure, PlanError, Report, Step, UserError, build_report

_MOST_REPEATS = 2  # plans in succession without progress, before a task fails

_Key = tuple[str, str]


@dataclass(frozen=True)
class Attempt:
    """One plan. ``apply`` applies it, and returns the steps that it reached and their report."""

    steps: list[Step]
    apply: t.Callable[[], tuple[list[Step], Report]]


def converge_with_others(make_attempt: t.Callable[[], Attempt], diff: bool) -> tuple[list[Step], Report]:
    """Make and apply a plan. Return its steps and the report.

    After a rejection, make the plan again, and apply it if it has another step for a rejected object. Then another
    client created, changed or removed that object in the meantime. All other rejections remain errors. So does one
    whose object is now different in an immutable field; the PlanError is its cause. A blocked plan is always
    made again.

    So is a plan with a change of unknown result. The change was made when its object is as desired now.

    A plan makes progress when it has fewer changes than all before, or chooses a new value for a rejected object.
    """
    done: dict[_Key, Step] = {}
    unknown: dict[_Key, Step] = {}
    attempt = make_attempt()
    fewest, repeats = _changes(attempt.steps), 0
    choices: list[t.Any] = []  # rejected desired objects
    steps, report = attempt.apply()
    while repeats < _MOST_REPEATS:
        rejected = _rejected(steps, report)
        uncertain = {(error.kind, error.key) for error in report.errors if error.unknown}
        unknown.update((_key(step), step) for step in steps if _key(step) in uncertain)
        always = uncertain or any(error.failure is Failure.BLOCKED for error in report.errors)
        if not (rejected or always):
            break
        try:
            attempt = make_attempt()
        except PlanError as error:
            return steps, replace(report, cause=error)
        except UserError:
            break  # the first error is the cause
        if not (always or _differs(rejected, attempt.steps)):
            break
        choices += [step.desired for step in rejected.values() if step.desired not in choices]
        again = [step.desired for step in attempt.steps if _key(step) in rejected]
        changes = _changes(attempt.steps)
        progress = changes < fewest or any(desired not in choices for desired in again)
        fewest, repeats = min(fewest, changes), 0 if progress else repeats + 1
        failed = {(error.kind, error.key) for error in report.errors}
        done.update((_key(step), step) for step in steps if step.action is not Action.NONE and _key(step) not in failed)
        needed = {_key(step) for step in attempt.steps if step.action is not Action.NONE}
        made = {key: step for key, step in unknown.items() if key not in needed}
        done.update(made)
        wrote = report.changed or bool(made)
        steps, report = attempt.apply()
        steps = [*(done.get(_key(step), step) for step in steps), *_unlisted(done, steps)]
        report = build_report(steps, report.errors, diff, wrote or report.changed)
    return steps, report


def _changes(steps: list[Step]) -> int:
    return sum(step.action is not Action.NONE for step in steps)


def _rejected(steps: list[Step], report: Report) -> dict[_Key, Step]:
    """Return the failed steps whose objects only other clients can have created, changed or removed."""
    failures = {(error.kind, error.key): error.failure for error in report.errors}
    return {_key(step): step for step in steps if _is_rejected(step, failures.get(_key(step)))}


def _is_rejected(step: Step, failure: Failure | None) -> bool:
    if failure is Failure.HALF_DONE:
        return step.before is None  # otherwise, this task removed it
    return failure is Failure.REJECTED


def _differs(rejected: dict[_Key, Step], steps: list[Step]) -> bool:
    again = {_key(step): step for step in steps}
    return any(_need(step) != _need(again.get(key)) for key, step in rejected.items())


def _need(step: Step | None) -> t.Any:
    """Return what an object needs; an object without a step is absent, as desired.

    The desired object is part of it, because a plan can choose a value that no other object has.
    """
    return step and (step.action, step.changed_fields, step.desired)


def _key(step: Step) -> _Key:
    return step.family.kind, step.key


def _unlisted(done: dict[_Key, Step], steps: list[Step]) -> list[Step]:
    """Return the steps that an earlier plan completed and a later one does not list, such as removals."""
    listed = {_key(step) for step in steps}
    return [step for key, step in done.items() if key not in listed]
