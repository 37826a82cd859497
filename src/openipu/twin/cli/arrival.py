# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until the controller reaches machines that have started."""

from __future__ import annotations

import time
from collections.abc import Collection

from openipu.shared.vipu import names
from openipu.shared.vipu.client import Client
from openipu.shared.vipu.contract import admin

SECONDS = 10.0  # longest wait; a controller reconnects about once per second
_POLL_SECONDS = 0.05


def unreached(client: Client, agent_ids: Collection[str], seconds: float = SECONDS) -> dict[str, str]:
    """Wait until these agents are Up, and return the reason of each that is not, by id.

    The controller can only reach agents that it has registered, so others are ignored. Raises VipuError.
    """
    deadline = time.monotonic() + seconds
    while True:
        agents = client.call(client.admin.ListAgents, admin.ListAgentsRequest(), "list agents").agents
        waiting = {
            agent.spec.id: agent.reason
            for agent in agents
            if agent.spec.id in agent_ids and names.AGENT_STATE.text(agent.state) != "Up"
        }
        if not waiting or time.monotonic() > deadline:
            return waiting
        time.sleep(_POLL_SECONDS)
