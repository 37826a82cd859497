# SPDX-License-Identifier: GPL-3.0-or-later
"""`show management api http-commands`: the servers of eAPI, as configured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openipu.twin.devices.eos.commands import Commands, Output
from openipu.twin.devices.eos.config.language import Mode
from openipu.twin.devices.eos.config.tree import Block
from openipu.twin.devices.eos.show.addresses import addresses
from openipu.twin.devices.eos.show.context import ShowContext

COMMANDS = Commands[ShowContext]()
_STATE = {True: "running", False: "shutdown"}


@COMMANDS.add("show management api http-commands", privileged=False)
def _http_commands(context: ShowContext, _: tuple[str, ...]) -> Output:
    service = context.switch.running.root.block("management", "api", "http-commands") or Block(Mode((), ()))
    enabled = service.get("shutdown") == "no shutdown"
    https = _server(service.get("protocol", "https") or "protocol https", enabled, 443)
    http = _server(service.get("protocol", "http"), enabled, 80)
    local = _server(service.get("protocol", "http", "localhost"), enabled, 8080)
    socket = _server(service.get("protocol", "unix-socket"), enabled, 0)
    text = "\n".join(
        [
            f"Enabled:            {'Yes' if enabled else 'No'}",
            f"HTTPS server:       {_STATE[https['running']]}, set to use port {https['port']}",
            f"HTTP server:        {_STATE[http['running']]}, set to use port {http['port']}",
            f"Local HTTP server:  {_STATE[local['running']]}, no authentication, set to use port {local['port']}",
            f"Unix Socket server: {_STATE[socket['running']]}, no authentication",
        ]
    )
    vrf = next((block.head.split()[1] for block in service.blocks("vrf") if block.get("shutdown")), "default")
    profile = service.value("protocol", "https", "ssl", "profile")
    tree = {
        "enabled": enabled,
        "httpsServer": https,
        "httpServer": http,
        "localHttpServer": local,
        "unixSocketServer": {"configured": socket["configured"], "running": socket["running"]},
        "vrf": vrf,
        "urls": list(_urls(context, vrf, {"https": https, "http": http})),
        # No profile is valid, because the twin has no command that defines one.
        **({"sslProfile": {"name": profile, "configured": True, "state": "invalid"}} if profile else {}),
    }
    return Output(text, tree)


def _server(line: str | None, enabled: bool, port: int) -> dict[str, Any]:
    """Return the JSON form of a server from its line, None when it has none. ``port`` is the default."""
    configured = bool(line) and not str(line).startswith("no ")
    last = str(line).split()[-1]
    return {"configured": configured, "running": configured and enabled, "port": int(last) if last.isdigit() else port}


def _urls(context: ShowContext, vrf: str, servers: dict[str, dict[str, Any]]) -> Iterator[str]:
    for one in context.switch.forwarding.interfaces.values():
        if (one.block.value("vrf") or "default") == vrf:
            for address in (item["primaryIp"]["address"] for item in addresses(one)):
                for scheme, server in servers.items():
                    if server["running"]:
                        yield f"{one.name} : {scheme}://{address}:{server['port']}"
