# SPDX-License-Identifier: GPL-3.0-or-later
"""Runner of a task in this process, like its action plugin."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.runner import Task


def perform(task: Task[Any], **options: Any) -> dict[str, Any]:
    """Run a task with these options, and return its result."""
    params = ArgumentSpecValidator(task.argument_spec).validate(options).validated_parameters
    result: dict[str, Any] = task.perform(params, check_mode=False, diff=False)
    return result
