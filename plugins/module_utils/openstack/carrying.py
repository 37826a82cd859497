# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a plan to what a task tells of it."""

from __future__ import annotations

import typing as t

from ..reconcile import Family, Object, Step, converge, nothing_done
from ..runner import TaskError
from .attempts import Attempts
from .options import Run


def carry_out(run: Run, steps: list[Step], writer: Attempts, families: t.Iterable[Family]) -> Object:
    """Carry the steps out, unless in check mode; the result tells of all these families.

    Raises TaskError, with the result, when something could not be written.
    """
    report = converge(steps, writer, run.check_mode, run.diff)
    report.changed = report.changed or writer.wrote
    result = {**{family.plural: nothing_done() for family in families}, **report.result()}
    if result.pop("failed", False):
        raise TaskError(result.pop("msg"), **result)
    return result
