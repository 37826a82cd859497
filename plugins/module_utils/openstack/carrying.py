# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a plan to what a task tells of it."""

from __future__ import annotations

import contextlib
import typing as t

from ..reconcile import Action, Family, Object, Report, SentenceError, Step, converge, nothing_done
from ..runner import TaskError
from .attempts import Attempts, Awaiting, place
from .options import Run


def carry_out(run: Run, steps: list[Step], writer: Attempts, families: t.Iterable[Family]) -> Object:
    """Carry the steps out, unless in check mode; the result tells of all these families.

    Raises TaskError, with the result, when something could not be written.
    """
    report = carried_out(run, steps, writer)
    result = {**{family.plural: nothing_done() for family in families}, **report.result()}
    if result.pop("failed", False):
        raise TaskError(result.pop("msg"), **result)
    return result


def carried_out(run: Run, steps: list[Step], writer: Attempts) -> Report:
    """What became of the steps, with what is not ready when it should be."""
    report = converge(steps, writer, run.check_mode, run.diff)
    if not run.check_mode:
        left = [step for step in steps if step.action is Action.NONE]
        if isinstance(writer, Awaiting):
            writer.settle(left)
        report.errors = writer.errors
        for step in left:
            if place(step) in writer.failed:
                report.done[step.family.plural]["unchanged"].remove(step.key)
    report.changed = report.changed or writer.wrote
    return report


@contextlib.contextmanager
def telling(result: Object) -> t.Iterator[None]:
    """What goes wrong in the block hides nothing of what was done before. Raises TaskError."""
    try:
        yield
    except SentenceError as error:
        raise TaskError(error.sentence, **result) from error
