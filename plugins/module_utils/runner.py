# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks: declared once, run by a module or by the action plugin of the same name.

A family of modules declares a ``Task`` with its options and functions. The module runs it on the target host, the
action plugin inside the Ansible worker (``plugin_utils.action``).
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .reconcile import Object, UserError


class Closable(t.Protocol):
    """Connection to a controller or a device."""

    def close(self) -> None:
        """Close the connection."""


_Transport = t.TypeVar("_Transport", bound=Closable)


@dataclass(frozen=True)
class Connector(t.Generic[_Transport]):
    """Connection options of a family, and the functions that use them.

    ``open`` takes the validated options and returns a transport that connects at its first call.
    ``ready`` takes the unvalidated arguments of the task and returns whether this Python has the libraries.
    ``prepare`` takes and returns unvalidated arguments, which the action plugin passes to the module.
    """

    options: dict[str, t.Any]
    open: t.Callable[[dict[str, t.Any]], _Transport]
    ready: t.Callable[[dict[str, t.Any]], bool]
    prepare: t.Callable[[dict[str, t.Any]], dict[str, t.Any]] = dict


@dataclass(frozen=True)
class Run(t.Generic[_Transport]):
    """One run of a task: its validated options, its modes and the transport."""

    params: dict[str, t.Any]
    check_mode: bool
    diff: bool
    transport: _Transport
    warnings: list[str] = field(default_factory=list)  # messages that Ansible prints whether the task succeeds or fails


class TaskError(UserError):
    """Raised when a task fails; ``result`` are further fields of its result, such as the ``error_code`` of a cause."""

    def __init__(self, message: str, **result: t.Any) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class Task(t.Generic[_Transport]):
    """A module: its connector, its own options with their constraints, and its function.

    ``run`` returns the result and raises UserError for failures that the user can fix.
    """

    connector: Connector[_Transport]
    options: dict[str, t.Any]
    run: t.Callable[[Run[_Transport]], Object]
    constraints: dict[str, t.Any] = field(default_factory=dict)

    @property
    def argument_spec(self) -> dict[str, t.Any]:
        """All options, including those of the connection."""
        return {**self.connector.options, **self.options}

    def perform(self, params: dict[str, t.Any], check_mode: bool, diff: bool) -> Object:
        """Run the task and return its result; a failure is a result with ``failed`` and ``msg``."""
        try:
            transport = self.connector.open(params)
        except UserError as error:
            return _failure(error)
        run = Run(params, check_mode, diff, transport)
        try:
            result = self.run(run)
        except UserError as error:
            result = _failure(error)
        finally:
            transport.close()
        return {**result, "warnings": run.warnings} if run.warnings else result


def _failure(error: UserError) -> Object:
    more = error.result if isinstance(error, TaskError) else {}
    return {"changed": False, "error_code": error.error_code, **more, "failed": True, "msg": error.message}


def run_module(task: Task[t.Any]) -> None:
    """Run a task as a module: the ``main`` of every module."""
    from ansible.module_utils.basic import AnsibleModule

    module = AnsibleModule(argument_spec=task.argument_spec, supports_check_mode=True, **task.constraints)
    result = task.perform(module.params, module.check_mode, module._diff)
    for warning in result.pop("warnings", ()):
        module.warn(warning)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)
