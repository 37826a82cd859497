# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fast path of the module poplar_network, and confirmation of its changes."""

from __future__ import annotations

import typing as t

from ansible_collections.openipu.pod.plugins.module_utils.host.network_task import POPLAR_NETWORK
from ansible_collections.openipu.pod.plugins.plugin_utils.action import TaskAction


class ActionModule(TaskAction):
    """Action plugin of the module poplar_network.

    After a change it confirms over a new request. If the host is not reachable, its timer rolls the change back.
    """

    task = POPLAR_NETWORK

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        confirms = self._task.args.get("state") == "confirmed"
        unchanged = not result.get("changed") or result.get("failed") or self._task.check_mode
        if confirms or unchanged or self._task.async_val:
            return result
        self._task.args = {**self._task.args, "state": "confirmed"}
        confirmed = super().run(tmp, task_vars)
        return {**confirmed, "changed": True} if confirmed.get("failed") else result
