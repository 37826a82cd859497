# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fast path: a task runs inside Ansible's worker when it would run on this host anyway.

That saves the start of a Python per task. The code is the module's own, and so are the results.
"""

from __future__ import annotations

import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible_collections.openipu.pod.plugins.module_utils.vipu.runner import Task
from ansible_collections.openipu.pod.plugins.module_utils.vipu.wire import HAS_GRPC, HAS_PROTOBUF


class TaskAction(ActionBase):
    """Runs ``task`` here, or hands over to the module of the same name."""

    task: Task
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True
    _supports_diff = True

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        if not self._runs_here(task_vars or {}):
            done = self._execute_module(task_vars=task_vars, wrap_async=self._task.async_val)
            result.update(done)
            return result
        checked = ArgumentSpecValidator(self.task.argument_spec, **self.task.constraints).validate(self._task.args)
        if checked.error_messages:
            result.update(failed=True, msg="; ".join(checked.error_messages))
            return result
        done = self.task.perform(checked.validated_parameters, bool(self._task.check_mode), bool(self._task.diff))
        result.update(remove_values(done, checked._no_log_values))
        return result

    def _runs_here(self, task_vars: dict[str, t.Any]) -> bool:
        """Whether this process is where the module would do its work, and can do it.

        ``become`` and delegation to another host change who and where; a missing library may be there
        in the Python of the target; ``openipu_fast_path: false`` is for those who want the module.
        """
        return (
            self._connection.transport == "local"
            and not self._task.async_val
            and not (self._connection.become and self._connection.become.name)
            and boolean(task_vars.get("openipu_fast_path", True), strict=False)
            and ((HAS_GRPC and HAS_PROTOBUF) or self._task.args.get("transport") == "cli")
        )
