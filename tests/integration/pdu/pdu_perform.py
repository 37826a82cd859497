# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a task in this process, as its action plugin does."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.runner import Task


def perform(task: Task[Any], **options: Any) -> dict[str, Any]:
    """The result of the task with these options."""
    params = ArgumentSpecValidator(task.argument_spec).validate(options).validated_parameters
    result: dict[str, Any] = task.perform(params, check_mode=False, diff=False)
    return result
