# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules and action plugins of all families share: a task is declared once and run by either."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .reconcile import Object, SentenceError


class Closable(t.Protocol):
    """What leads to a controller or a device."""

    def close(self) -> None:
        """Let go of it."""


_Transport = t.TypeVar("_Transport", bound=Closable)


@dataclass(frozen=True)
class Way(t.Generic[_Transport]):
    """How the modules of a family reach what they manage.

    ``open`` takes the validated options and connects to nothing yet; ``ready`` says whether this Python
    has the libraries for it, given the task's arguments as they are.
    """

    options: dict[str, t.Any]
    open: t.Callable[[dict[str, t.Any]], _Transport]
    ready: t.Callable[[dict[str, t.Any]], bool]


@dataclass(frozen=True)
class Run(t.Generic[_Transport]):
    """One run of a task: its validated options, how it was called, and the way to what it manages."""

    params: dict[str, t.Any]
    check_mode: bool
    diff: bool
    transport: _Transport
    warnings: list[str] = field(default_factory=list)  # sentences that Ansible shows, whatever becomes of the task


class TaskError(SentenceError):
    """The task failed: one sentence, and what else the result shall carry."""

    def __init__(self, sentence: str, **result: t.Any) -> None:
        super().__init__(sentence)
        self.result = result


@dataclass(frozen=True)
class Task(t.Generic[_Transport]):
    """A module: how it gets there, its own options and their constraints, and what it does.

    ``run`` gives the result without regard to how Ansible wants it; it raises a SentenceError for
    whatever a user can cure.
    """

    way: Way[_Transport]
    options: dict[str, t.Any]
    run: t.Callable[[Run[_Transport]], Object]
    constraints: dict[str, t.Any] = field(default_factory=dict)

    @property
    def argument_spec(self) -> dict[str, t.Any]:
        """All options, with those of the connection."""
        return {**self.way.options, **self.options}

    def perform(self, params: dict[str, t.Any], check_mode: bool, diff: bool) -> Object:
        """Run the task; a failure is a result with ``failed`` and ``msg``."""
        try:
            transport = self.way.open(params)
        except SentenceError as error:
            return _failure(error)
        run = Run(params, check_mode, diff, transport)
        try:
            result = self.run(run)
        except SentenceError as error:
            result = _failure(error)
        finally:
            transport.close()
        return {**result, "warnings": run.warnings} if run.warnings else result


def _failure(error: SentenceError) -> Object:
    more = error.result if isinstance(error, TaskError) else {}
    return {"changed": False, **more, "failed": True, "msg": error.sentence}


def run_module(task: Task[t.Any]) -> None:
    """The ``main`` of every module."""
    from ansible.module_utils.basic import AnsibleModule

    module = AnsibleModule(argument_spec=task.argument_spec, supports_check_mode=True, **task.constraints)
    result = task.perform(module.params, module.check_mode, module._diff)
    for warning in result.pop("warnings", ()):
        module.warn(warning)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)
