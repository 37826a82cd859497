# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_agent_discovery_info: read the agents that the controller discovered."""

from __future__ import annotations

from ...reconcile import Object
from ...runner import Task
from ..options import VIPU, Run


def _discovery(run: Run) -> Object:
    return {"changed": False, "agents": run.transport.discovered()}


VIPU_AGENT_DISCOVERY_INFO = Task(VIPU, {}, _discovery)
