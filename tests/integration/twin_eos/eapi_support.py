# SPDX-License-Identifier: GPL-3.0-or-later
"""Cables of the switches, and requests of pyeapi."""

from __future__ import annotations

from typing import Any

from openipu.twin.cables.switch_cabling import Neighbour

CABLES = {
    "Ethernet1/1": Neighbour("b-ipum1", "00:11:22:33:44:55", "eth1", (("00:11:22:33:44:55", None),)),
    "Ethernet2/1": Neighbour("poplar1", "00:11:22:33:44:77", "eno1", (("00:11:22:33:44:77", None),)),
    "Ethernet3/1": Neighbour("b-ipum2", "00:11:22:33:44:99", "eth1", up=False),
}


def show(node: Any, command: str) -> dict[str, Any]:
    """Return the JSON output of a command."""
    found: dict[str, Any] = node.enable(command)[0]["result"]
    return found


def show_text(node: Any, command: str) -> str:
    """Return the text output of a command."""
    return str(node.enable(command, encoding="text")[0]["result"]["output"])
