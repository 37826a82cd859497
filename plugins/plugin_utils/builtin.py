# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of builtin action plugins from action plugins of this collection."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase


def run_builtin(
    action: ActionBase, name: str, args: dict[str, t.Any], task_vars: dict[str, t.Any] | None, diff: bool = True
) -> dict[str, t.Any]:
    """Run the action plugin ``name`` in the context of ``action`` and return its result.

    Without ``diff``, the result contains no diff.
    """
    task = action._task.copy()
    task.args = args
    task.diff = bool(task.diff and diff)
    context = {
        "connection": action._connection,
        "play_context": action._play_context,
        "loader": action._loader,
        "templar": action._templar,
        "shared_loader_obj": action._shared_loader_obj,
    }
    builtin = action._shared_loader_obj.action_loader.get(name, task=task, **context)
    return t.cast("dict[str, t.Any]", builtin.run(task_vars=task_vars))
