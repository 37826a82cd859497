# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fast path of the module vipu_agent_drain."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.drain_task import VIPU_AGENT_DRAIN
from ansible_collections.openipu.pod.plugins.plugin_utils.action import TaskAction


class ActionModule(TaskAction):
    """Action plugin of the module vipu_agent_drain."""

    task = VIPU_AGENT_DRAIN
