# SPDX-License-Identifier: GPL-3.0-or-later
"""Identity of a controller in the metadata of its calls to agents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

DEPLOYMENT = "openipu-deployment"
EPOCH = "openipu-epoch"
REJECTION = "Cannot use this agent: "  # start of the message of a rejected call

_ID = re.compile(r"[0-9a-f]{1,64}")
_EPOCH = re.compile(r"[0-9]{1,18}")


class Controller(NamedTuple):
    """Deployment of a controller, and the epoch of its process."""

    deployment: str
    epoch: int


def is_deployment(id: str) -> bool:
    """Return whether a text has the form of a deployment id."""
    return _ID.fullmatch(id) is not None


def metadata(controller: Controller) -> tuple[tuple[str, str], ...]:
    """Return the metadata of the calls of a controller."""
    return (DEPLOYMENT, controller.deployment), (EPOCH, str(controller.epoch))


def caller(metadata: Iterable[tuple[str, str | bytes]]) -> Controller | None:
    """Return the controller in the metadata of a call; None without a valid one."""
    values = {key: value for key, value in metadata if key in (DEPLOYMENT, EPOCH) and isinstance(value, str)}
    deployment, epoch = values.get(DEPLOYMENT, ""), values.get(EPOCH, "")
    if not (is_deployment(deployment) and _EPOCH.fullmatch(epoch)):
        return None
    return Controller(deployment, int(epoch))
