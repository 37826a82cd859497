# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of the modules vipu_agent, vipu_cluster and vipu_allocation."""

from __future__ import annotations

import typing as t

from ...reconcile import Family, Object
from ...runner import Task
from ..convergence import FORCE, RECREATE, STATE, call_after_write, converge_object, single_result
from ..options import VIPU, Run
from ..resources import AGENT, ALLOCATION, CLUSTER, OPTIONS
from ..transport.interface import Transport


def _declare(family: Family, *more: dict[str, t.Any], **constraints: t.Any) -> Task[Transport]:
    options = {**OPTIONS[family.kind], "state": STATE}
    for group in more:
        options.update(group)

    def run(run: Run) -> Object:
        step, report = converge_object(run, family)
        return call_after_write(report.changed, lambda: single_result(run, family, step, report))

    return Task(VIPU, options, run, constraints)


VIPU_AGENT = _declare(AGENT, FORCE, required_if=[("state", "present", ("host",))])
VIPU_CLUSTER = _declare(CLUSTER, FORCE, required_if=[("state", "present", ("agents",))])
VIPU_ALLOCATION = _declare(
    ALLOCATION,
    FORCE,
    RECREATE,
    required_if=[("state", "present", ("cluster",)), ("state", "present", ("size", "agents"), True)],
    mutually_exclusive=[("size", "agents")],
)
