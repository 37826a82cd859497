# SPDX-License-Identifier: GPL-3.0-or-later
"""Identity of a controller in the metadata of its calls to agents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from openipu.shared.vipu.object_rules import is_valid_id

DEPLOYMENT = "openipu-deployment"
EPOCH = "openipu-epoch"
AGENT = "openipu-agent"
REJECTION = "Cannot use this agent: "  # start of the message of a rejected call

_ID = re.compile(r"[0-9a-f]{1,64}")
_EPOCH = re.compile(r"[0-9]{1,18}")


class Controller(NamedTuple):
    """Deployment of a controller, and the epoch of its process.

    ``agent``: id under which it has registered the agent that it calls, empty for unknown.
    """

    deployment: str
    epoch: int
    agent: str = ""


def is_deployment(id: str) -> bool:
    """Return whether a text has the form of a deployment id."""
    return _ID.fullmatch(id) is not None


def metadata(controller: Controller) -> tuple[tuple[str, str], ...]:
    """Return the metadata of the calls of a controller to an agent."""
    values = (DEPLOYMENT, controller.deployment), (EPOCH, str(controller.epoch))
    return (*values, (AGENT, controller.agent)) if controller.agent else values


def controller(deployment: object, epoch: object, agent: object) -> Controller:
    """Return the controller with these values, as from a file. Raises ValueError for invalid ones."""
    if isinstance(deployment, str) and isinstance(epoch, int) and isinstance(agent, str):
        found = caller(metadata(Controller(deployment, epoch, agent)))
        if found:
            return found
    raise ValueError("a value is invalid")


def caller(metadata: Iterable[tuple[str, str | bytes]]) -> Controller | None:
    """Return the controller in the metadata of a call; None without a valid one."""
    values = {key: value for key, value in metadata if key in (DEPLOYMENT, EPOCH, AGENT) and isinstance(value, str)}
    deployment, epoch, agent = (values.get(key, "") for key in (DEPLOYMENT, EPOCH, AGENT))
    if not (is_deployment(deployment) and _EPOCH.fullmatch(epoch)) or (agent and not is_valid_id(agent)):
        return None
    return Controller(deployment, int(epoch), agent)
