# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fast path: a task runs inside Ansible's worker when it would run on this host anyway.

That saves the start of a Python per task. The code is the module's own, and so are the results.
"""

from __future__ import annotations

import contextlib
import json
import os
import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.errors import UnsupportedError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible_collections.openipu.pod.plugins.module_utils.runner import Task


class TaskAction(ActionBase):
    """Runs ``task`` here, or hands over to the module of the same name."""

    task: Task[t.Any]
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        if self._runs_here(task_vars or {}):
            with self._surroundings():
                result.update(self._perform())
        else:
            result.update(self._execute_module(task_vars=task_vars, wrap_async=self._task.async_val))
        return result

    def _runs_here(self, task_vars: dict[str, t.Any]) -> bool:
        """Whether this process is where the module would do its work, and can do it.

        ``become`` and delegation to another host change who and where; a missing library may be there
        in the Python of the target; ``openipu_fast_path: false`` is for those who want the module.
        """
        return (
            self._connection.transport == "local"
            and not self._task.async_val
            and self._connection.become is None
            and boolean(self._templar.template(task_vars.get("openipu_fast_path", True)), strict=False)
            and self.task.way.ready(self._task.args)
        )

    def _perform(self) -> dict[str, t.Any]:
        checked = ArgumentSpecValidator(self.task.argument_spec, **self.task.constraints).validate(
            plain(self._task.args)
        )
        if checked.error_messages:
            message = checked.errors.msg
            if isinstance(checked.errors[0], UnsupportedError):
                message = f"Unsupported parameters for ({self._task.action}) module: {message}"
            done: dict[str, t.Any] = {"failed": True, "msg": message}
        else:
            done = self.task.perform(checked.validated_parameters, bool(self._task.check_mode), bool(self._task.diff))
        return t.cast("dict[str, t.Any]", remove_values(done, checked._no_log_values))

    @contextlib.contextmanager
    def _surroundings(self) -> t.Iterator[None]:
        """The environment and the folder that the module would run in: the task's, and the playbook's."""
        environment: dict[str, t.Any] = {}
        self._compute_environment_string(environment)
        before, folder = dict(os.environ), os.getcwd()  # noqa: PTH109 - the folder as it is named
        os.environ.update({name: str(value) for name, value in environment.items()})
        os.chdir(self._loader.get_basedir())
        try:
            yield
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)


def plain(args: dict[str, t.Any]) -> dict[str, t.Any]:
    """The arguments as a module is given them: by way of JSON, without the tags of ansible-core 2.19.

    A validator that drags tags along takes longer than everything else that a large task does.
    """
    return t.cast("dict[str, t.Any]", json.loads(json.dumps(args, default=str)))
