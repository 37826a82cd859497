# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fast path of the module pdu."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.pdu.task import PDU_TASK
from ansible_collections.openipu.pod.plugins.module_utils.pdu.session import load_mibs
from ansible_collections.openipu.pod.plugins.plugin_utils.action import TaskAction

load_mibs()  # before Ansible forks a worker for each PDU


class ActionModule(TaskAction):
    """Action plugin of the module pdu."""

    task = PDU_TASK
