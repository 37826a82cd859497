# SPDX-License-Identifier: GPL-3.0-or-later
"""Twin of a switch without network, for unit tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from openipu.twin.cables.switch_cabling import Neighbour
from openipu.twin.devices.eos.cli import Cli
from openipu.twin.devices.eos.config.startup import startup_config
from openipu.twin.devices.eos.switch import Credentials, Switch

DATA, MANAGEMENT = "DCS-7060CX-32S-F", "DCS-7010T-48-F"


class Clock:
    """Clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0  # Tue Nov 14 22:13:20 2023 UTC

    def __call__(self) -> float:
        return self.now


class Plugged:
    """Neighbours of the ports."""

    def __init__(self, ports: Mapping[str, Neighbour]) -> None:
        self._ports = ports

    def neighbour(self, port: str) -> Neighbour | None:
        return self._ports.get(port)


class Console:
    """Command line in privileged mode."""

    def __init__(
        self, model: str = DATA, ports: Mapping[str, Neighbour] | None = None, complete: bool = False, startup: str = ""
    ) -> None:
        self.clock = Clock()
        self.switch = Switch(
            "tor1",
            model,
            startup_config=startup or startup_config("tor1", "10.1.3.111/24"),
            cabling=Plugged(ports or {}),
            credentials=Credentials({"admin": "unused", "viewer": "unused"}, frozenset({"viewer"})),
            clock=self.clock,
        )
        self.cli = Cli(self.switch, "admin", complete)
        self.cli.run("enable")

    def type(self, *commands: str) -> str:
        """Run commands and return the output of the last one."""
        printed = ""
        for command in commands:
            printed = self.cli.run(command)["output"]
        return printed

    def configure(self, *lines: str) -> list[str]:
        """Enter lines in configuration mode and return the new lines of the configuration."""
        before = self.lines
        self.type("configure", *lines, "end")
        return [line for line in self.lines if line not in before]

    def show_json(self, command: str) -> dict[str, Any]:
        """Return the JSON output of a command."""
        return self.cli.run(command, as_json=True)

    @property
    def lines(self) -> list[str]:
        """Lines of the running configuration."""
        return self.switch.running.lines()


def block(lines: Iterable[str], head: str) -> list[str]:
    """Return the lines below a head line."""
    found: list[str] = []
    inside = False
    for line in lines:
        if not line.startswith(" "):
            inside = line == head
        elif inside:
            found.append(line.strip())
    return found
