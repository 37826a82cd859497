# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the handlers of `show` commands."""

from __future__ import annotations

from dataclasses import dataclass

from openipu.twin.devices.eos.config.sessions import Session
from openipu.twin.devices.eos.forwarding import Forwarding, Interface
from openipu.twin.devices.eos.switch import Switch


@dataclass(frozen=True)
class ShowContext:
    """Read-only input of a `show` command.

    Args:
        switch: switch on which the command runs.
        session: configuration session that the command line is in; None outside of sessions.
    """

    switch: Switch
    session: Session | None = None


def selected(forwarding: Forwarding, values: tuple[str, ...]) -> list[Interface]:
    """Return the interfaces that a command names, or all."""
    if not values:
        return list(forwarding.interfaces.values())
    return [one for name in values[0].split(",") if (one := forwarding.interfaces.get(name))]
