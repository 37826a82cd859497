# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls to agents as a controller that owns them."""

from __future__ import annotations

from typing import Any

from openipu.vipu.agent_api import identity
from openipu.vipu.agent_api.contract import agent

OWNER = identity.Controller("0123456789abcdef", 1)
OTHER = identity.Controller("fedcba9876543210", 1)


def controller_stub(channel: Any, controller: identity.Controller = OWNER) -> Any:
    """Return a stub of an agent for the calls of a controller. ``TakeOver`` makes it the owner."""
    return agent.stub(channel, "AgentService", identity.metadata(controller))
