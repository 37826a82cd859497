# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fast path of the module poplar_network, and the word that lets a change stay."""

from __future__ import annotations

import typing as t

from ansible_collections.openipu.pod.plugins.module_utils.host.network_task import POPLAR_NETWORK
from ansible_collections.openipu.pod.plugins.plugin_utils.action import TaskAction


class ActionModule(TaskAction):
    """See the module. Whoever cannot be told that the host still answers takes the change back by itself."""

    task = POPLAR_NETWORK

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        asked_to_keep = self._task.args.get("state") == "kept"
        nothing_to_keep = not result.get("changed") or result.get("failed") or self._task.check_mode or asked_to_keep
        if nothing_to_keep or self._task.async_val:
            return result
        self._task.args = {**self._task.args, "state": "kept"}
        kept = super().run(tmp, task_vars)
        return {**kept, "changed": True} if kept.get("failed") else result
