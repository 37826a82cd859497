# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch of the twin without a network around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from openipu.twin.eos.cli import Cli
from openipu.twin.eos.startup import startup_config
from openipu.twin.eos.surroundings import Neighbour
from openipu.twin.eos.switch import Credentials, Switch

DATA, MANAGEMENT = "DCS-7060CX-32S-F", "DCS-7010T-48-F"


class Clock:
    """Time that tests pass."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0  # Tue Nov 14 22:13:20 2023 UTC

    def __call__(self) -> float:
        return self.now


class Plugged:
    """What is plugged into ports."""

    def __init__(self, ports: Mapping[str, Neighbour]) -> None:
        self._ports = ports

    def neighbour(self, port: str) -> Neighbour | None:
        return self._ports.get(port)


class Console:
    """Somebody in privileged mode of a switch."""

    def __init__(
        self, model: str = DATA, ports: Mapping[str, Neighbour] | None = None, complete: bool = False, startup: str = ""
    ) -> None:
        self.clock = Clock()
        self.switch = Switch(
            "tor1",
            model,
            startup_config=startup or startup_config("tor1", "10.1.3.111/24"),
            surroundings=Plugged(ports or {}),
            credentials=Credentials({"admin": "unused", "viewer": "unused"}, frozenset({"viewer"})),
            clock=self.clock,
        )
        self.cli = Cli(self.switch, "admin", complete)
        self.cli.run("enable")

    def type(self, *commands: str) -> str:
        """Carry commands out, and give what the last one printed."""
        printed = ""
        for command in commands:
            printed = self.cli.run(command)["output"]
        return printed

    def configure(self, *lines: str) -> list[str]:
        """Type these lines in configuration mode, and give what is new in the configuration."""
        before = self.lines
        self.type("configure", *lines, "end")
        return [line for line in self.lines if line not in before]

    def told(self, command: str) -> dict[str, Any]:
        """What a command tells as data."""
        return self.cli.run(command, as_json=True)

    @property
    def lines(self) -> list[str]:
        """The running configuration."""
        return self.switch.running.lines()


def block(lines: Iterable[str], head: str) -> list[str]:
    """What stands under a head line."""
    found: list[str] = []
    inside = False
    for line in lines:
        if not line.startswith(" "):
            inside = line == head
        elif inside:
            found.append(line.strip())
    return found
