# SPDX-License-Identifier: GPL-3.0-or-later
"""List of V-IPU controllers: ``host:port:key=value``, separated by commas or line breaks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_ENTRY = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:\[\]=,]+):(?P<port>\d{1,5})(?::(?P<key>[^\s:=,]+)=(?P<value>[^\s:=,]*))?"
)
_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class Controller:
    """A V-IPU controller. ``node_label``: label of the nodes that reach its IPUs.

    ``host`` may name several hosts of one deployment, separated by ``|``: one of them leads.
    """

    host: str
    port: int
    node_label: tuple[str, str] | None = None

    @property
    def address(self) -> str:
        """First host and port, which identify the controller. Further hosts do not change them."""
        host = self.host.partition("|")[0]
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def hosts(self) -> str:
        """Hosts as a client takes them."""
        return self.host.replace("|", ",")


def suits(node_label: tuple[str, str] | None, labels: Mapping[str, str]) -> bool:
    """Return whether a node with these labels reaches the IPUs of a controller. Without a label, all nodes do."""
    return node_label is None or labels.get(node_label[0]) == node_label[1]


def may_suit(node_label: tuple[str, str] | None, selector: Mapping[str, str]) -> bool:
    """Return whether nodes of a selector can reach the IPUs of a controller."""
    return node_label is None or selector.get(*node_label) == node_label[1]


def parse(text: str) -> list[Controller]:
    """Return the controllers in the order in which they are tried. Raises ValueError with a sentence.

    Empty lines, comments and the hyphens of a YAML list are ignored.
    """
    found: dict[str, Controller] = {}
    for line in text.splitlines():
        for entry in re.split(r"[,\s]+", line.partition("#")[0].strip().removeprefix("- ").strip("\"'")):
            if not entry:
                continue
            controller = _entry(entry)
            if controller.address in found:
                raise ValueError(f"The V-IPU controller {controller.address} is listed twice. Remove one of them.")
            found[controller.address] = controller
    return list(found.values())


def _entry(text: str) -> Controller:
    match = _ENTRY.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= _MAX_PORT:
        raise ValueError(
            f"{text!r} is no V-IPU controller. Write it as host:port:key=value, with the label of its nodes."
        )
    label = (match["key"], match["value"]) if match["key"] else None
    return Controller(match["host"].strip("[]"), int(match["port"]), label)
