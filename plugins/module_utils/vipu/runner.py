# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules and action plugins share: a task is declared once and run by either."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ..reconcile import Object, PlanError
from .client import VipuError
from .options import CONNECTION_OPTIONS, open_transport
from .transport import Transport


@dataclass(frozen=True)
class Run:
    """One run of a task: its validated options, how it was called, and the way to the controller."""

    params: dict[str, t.Any]
    check_mode: bool
    diff: bool
    transport: Transport
    warnings: list[str] = field(default_factory=list)  # sentences that Ansible shows, whatever becomes of the task


class TaskError(Exception):
    """The task failed: one sentence, and what else the result shall carry."""

    def __init__(self, sentence: str, **result: t.Any) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.result = result


@dataclass(frozen=True)
class Task:
    """A module: its own options and their constraints, and what it does.

    ``run`` gives the result without regard to how Ansible wants it; it raises VipuError, PlanError or
    TaskError for whatever a user can cure.
    """

    options: dict[str, t.Any]
    run: t.Callable[[Run], Object]
    constraints: dict[str, t.Any] = field(default_factory=dict)

    @property
    def argument_spec(self) -> dict[str, t.Any]:
        """All options, with those of the connection."""
        return {**CONNECTION_OPTIONS, **self.options}

    def perform(self, params: dict[str, t.Any], check_mode: bool, diff: bool) -> Object:
        """Run the task; a failure is a result with ``failed`` and ``msg``."""
        transport = open_transport(params)
        run = Run(params, check_mode, diff, transport)
        try:
            result = self._outcome(run)
        finally:
            transport.close()
        return {**result, "warnings": run.warnings} if run.warnings else result

    def _outcome(self, run: Run) -> Object:
        try:
            return self.run(run)
        except (VipuError, PlanError) as error:
            return {"failed": True, "changed": False, "msg": error.sentence}
        except TaskError as error:
            return {"changed": False, **error.result, "failed": True, "msg": error.sentence}


def run_module(task: Task) -> None:
    """The ``main`` of every V-IPU module."""
    from ansible.module_utils.basic import AnsibleModule

    module = AnsibleModule(argument_spec=task.argument_spec, supports_check_mode=True, **task.constraints)
    result = task.perform(module.params, module.check_mode, module._diff)
    for warning in result.pop("warnings", ()):
        module.warn(warning)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)
