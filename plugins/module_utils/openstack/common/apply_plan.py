# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Application of plans, and the result of a task."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field
from functools import partial

from ...reconcile import Action, Family, ItemError, Object, Report, Step, UserError, build_report, empty_result
from ...replan import Attempt, converge_with_others
from ...runner import TaskError
from .options import Run
from .steps import REMOVALS, step_id
from .writer import StepWriter, WaitingWriter

Plan = tuple[list[Step], StepWriter]


def apply_plans(
    run: Run,
    make_plans: t.Callable[[], t.Sequence[Plan]],
    families: t.Iterable[Family],
    details: t.Callable[[], Object] | None = None,
) -> Object:
    """Make plans and apply them in order, except in check mode, and return the result of the task.

    The first plan with an error ends the run. Other clients may write the same objects, see ``replan``: then
    ``make_plans`` is called again. The result has an entry for each of ``families``, and the ids of their objects.
    ``details`` returns further fields of the result and is called after all plans succeeded. Raises TaskError, which
    contains the result so far.
    """
    ids = _Ids()

    def attempt() -> Attempt:
        plans = make_plans()
        return Attempt([step for steps, _writer in plans for step in steps], partial(_apply, run, plans, ids))

    steps, report = converge_with_others(attempt, run.diff)
    result = {**{family.plural: empty_result() for family in families}, **report.result(), "ids": ids.result(steps)}
    if result.pop("failed", False):
        raise TaskError(result.pop("msg"), **result)
    if details:
        try:
            result.update(details())
        except UserError as error:
            raise TaskError(error.message, **{**result, "error_code": error.error_code}) from error
    return result


@dataclass
class _Ids:
    """Ids of new objects of all attempts, and the objects that the last attempt could not remove."""

    created: dict[tuple[str, str], str] = field(default_factory=dict)
    not_removed: set[tuple[str, str]] = field(default_factory=set)

    def add(self, writer: StepWriter) -> None:
        """Add the objects of a writer after its steps."""
        self.created.update(writer.created_ids)
        self.not_removed |= writer.failed.keys() - writer.removed

    def result(self, steps: list[Step]) -> dict[str, dict[str, str]]:
        """Return the ids of the objects of all steps by plural of the kind and key. Removed objects have none."""
        found: dict[str, dict[str, str]] = {}
        for step in steps:
            exists = step.action not in REMOVALS or step_id(step) in self.not_removed
            id = self.created.get(step_id(step), (step.before or {}).get("uuid") if exists else None)
            if id:
                found.setdefault(step.family.plural, {})[step.key] = id
        return found


def _apply(run: Run, plans: t.Sequence[Plan], ids: _Ids) -> tuple[list[Step], Report]:
    """Apply plans, and add the objects to ``ids``."""
    ids.not_removed.clear()
    steps: list[Step] = []
    errors: list[ItemError] = []
    wrote = False
    for part, writer in plans:
        steps += part
        if not run.check_mode:
            _write(part, writer)
            ids.add(writer)
            errors = writer.errors
            wrote = wrote or writer.wrote
        if errors:
            break
    return steps, build_report(steps, errors, run.diff, wrote)


def _write(steps: list[Step], writer: StepWriter) -> None:
    """Write the changes, and wait for unchanged objects that are not ready yet."""
    changes = [step for step in steps if step.action is not Action.NONE]
    if changes:
        writer(changes)
    if isinstance(writer, WaitingWriter):
        writer.settle([step for step in steps if step.action is Action.NONE])
