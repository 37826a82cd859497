# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fast path: run a task inside the Ansible worker when the target is the control node itself.

This saves the start of a Python process per task. Code and results are those of the module. The action plugin starts
the module instead with ``become`` or ``async``, on another host, without a required library, and with
``openipu_fast_path: false``.
"""

from __future__ import annotations

import contextlib
import json
import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError
from ansible_collections.openipu.pod.plugins.module_utils.runner import Task, TaskError
from ansible_collections.openipu.pod.plugins.plugin_utils import option_mistakes


class TaskAction(ActionBase):
    """Action that runs ``task`` in this process or executes the module of the same name."""

    task: Task[t.Any]
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        check_pods(self._task, task_vars or {})
        try:
            self._task.args = self.task.connector.prepare(self._task.args)
        except UserError as error:
            return {**result, "failed": True, "msg": error.message, "error_code": error.error_code}
        message = _mistakes(self._task, self.task.argument_spec)
        if message:
            return {**result, "failed": True, "msg": message, "error_code": TaskError.error_code}
        if self._runs_here(task_vars or {}):
            with self._module_environment():
                result.update(self._perform())
        else:
            result.update(self._execute_module(task_vars=task_vars, wrap_async=self._task.async_val))
        return result

    def _runs_here(self, task_vars: dict[str, t.Any]) -> bool:
        """Return whether this process can replace the module.

        It cannot with ``become``, with another target host, or when a library is missing that the Python of
        the target may have. ``openipu_fast_path: false`` always runs the module.
        """
        return (
            self._connection.transport == "local"
            and not self._task.async_val
            and self._connection.become is None
            and boolean(self._templar.template(task_vars.get("openipu_fast_path", True)), strict=False)
            and self.task.connector.ready(self._task.args)
        )

    def _perform(self) -> dict[str, t.Any]:
        checked = ArgumentSpecValidator(self.task.argument_spec, **self.task.constraints).validate(
            plain_args(self._task.args)
        )
        if checked.error_messages:
            result: dict[str, t.Any] = {"failed": True, "msg": checked.errors.msg}
        else:
            result = self.task.perform(checked.validated_parameters, bool(self._task.check_mode), bool(self._task.diff))
        return t.cast("dict[str, t.Any]", remove_values(result, checked._no_log_values))

    @contextlib.contextmanager
    def _module_environment(self) -> t.Iterator[None]:
        """Set the environment of the task and the folder of the playbook, as the module would have them."""
        environment: dict[str, t.Any] = {}
        self._compute_environment_string(environment)
        before, folder = dict(os.environ), os.getcwd()  # noqa: PTH109 - keep links in the path
        os.environ.update({name: str(value) for name, value in environment.items()})
        os.chdir(self._loader.get_basedir())
        try:
            yield
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)


def check_options(task: t.Any, spec: option_mistakes.Spec) -> None:
    """Raise AnsibleActionFail for mistyped options, with the right ones."""
    message = _mistakes(task, spec)
    if message:
        raise AnsibleActionFail(message, result={"error_code": TaskError.error_code})


def _mistakes(task: t.Any, spec: option_mistakes.Spec) -> str:
    """Return the message for mistyped options, empty without any."""
    found = option_mistakes.mistakes(task.args, spec)
    return f"Cannot use the options of {task.action}: {' '.join(found)}" if found else ""


def check_pods(task: t.Any, task_vars: dict[str, t.Any]) -> None:
    """Raise AnsibleActionFail for a task with ``run_once`` in a play with several PODs: it would skip all but one.

    Hosts without a POD do not count.
    """
    pod_group = task_vars.get("pod_group", "all")
    if not task.run_once or pod_group == "all":
        return
    candidates = set(task_vars["ansible_play_hosts_all"]).difference(task_vars["groups"].get(pod_group, ()))
    other = next((host for host in sorted(candidates) if "pod_group" in task_vars["hostvars"][host]), None)
    if other:
        message = (
            f"Cannot run a task once for several PODs: the play has hosts of {pod_group}, and others, such as "
            f"{other}. Limit it to one POD: --limit {pod_group}."
        )
        raise AnsibleActionFail(message, result={"error_code": TaskError.error_code})


def plain_args(args: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the arguments as a module receives them: converted by JSON, without the tags of ansible-core 2.19.

    The validator spends more time on tagged values than a large task needs for everything else.
    """
    return t.cast("dict[str, t.Any]", json.loads(json.dumps(args, default=str)))
