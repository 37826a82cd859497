# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fast path of the module openstack_pod_bare_metal."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.openstack.bare_metal.task import OPENSTACK_POD_BARE_METAL
from ansible_collections.openipu.pod.plugins.plugin_utils.action import TaskAction


class ActionModule(TaskAction):
    """Action plugin of the module openstack_pod_bare_metal."""

    task = OPENSTACK_POD_BARE_METAL
