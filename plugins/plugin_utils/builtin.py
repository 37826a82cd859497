# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An action of Ansible's own, run as a part of one of ours."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase


def run_builtin(
    action: ActionBase, name: str, args: dict[str, t.Any], task_vars: dict[str, t.Any] | None, diff: bool = True
) -> dict[str, t.Any]:
    """The result of the action ``name`` with ``args``, run as ``action`` is; without ``diff``, it shows none."""
    task = action._task.copy()
    task.args = args
    task.diff = bool(task.diff and diff)
    ours = {
        "connection": action._connection,
        "play_context": action._play_context,
        "loader": action._loader,
        "templar": action._templar,
        "shared_loader_obj": action._shared_loader_obj,
    }
    builtin = action._shared_loader_obj.action_loader.get(name, task=task, **ours)
    return t.cast("dict[str, t.Any]", builtin.run(task_vars=task_vars))
