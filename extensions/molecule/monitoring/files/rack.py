# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated rack: two agents, a controller, a PDU and an alert receiver, each a process.

rack.py FOLDER up|down|stop NAME|start NAME|serve-pdu ADDRESS|receive ADDRESS FILE
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from openipu.process.background import Service
from openipu.twin.devices.pdu import Credentials, Pdu, User, serve

BIN = Path(sys.executable).parent
CONTROLLER, RECEIVER, PDU = "10.30.70.201", "10.30.70.202", "10.30.70.131"
AGENTS = {"ag01": "10.30.71.1", "ag02": "10.30.71.2"}
ADDRESSES = (CONTROLLER, RECEIVER, PDU, *AGENTS.values())
METRICS = "2112"
SECONDS = 30.0


def services(folder: Path) -> dict[str, tuple[Service, Callable[[], bool]]]:
    """Return each process by name, with a function that returns whether it is ready."""
    database = str(folder / "vipu-server.db")
    commands: dict[str, tuple[list[str], str, int]] = {
        "controller": (
            [str(BIN / "vipu-server"), "--database", database, *_on(CONTROLLER)],
            CONTROLLER,
            8090,
        ),
        "receiver": (_self(folder, "receive", RECEIVER, folder / "alerts.json"), RECEIVER, 9099),
        "pdu1": (_self(folder, "serve-pdu", PDU), PDU, 0),
    }
    for name, address in AGENTS.items():
        commands[name] = [str(BIN / "virm-agent"), *_on(address)], address, 8080
    found = {}
    for name, (command, address, port) in commands.items():
        service = Service(name, folder / f"{name}.pid", folder / f"{name}.log", command)
        found[name] = service, _listening(address, port, folder / f"{name}.log")
    return found


def _on(address: str) -> list[str]:
    return ["--host", address, "--insecure-network", "--metrics-host", address, "--metrics-port", METRICS]


def _self(folder: Path, *command: str | Path) -> list[str]:
    return [sys.executable, __file__, str(folder), *(str(part) for part in command)]


def _listening(address: str, port: int, log: Path) -> Callable[[], bool]:
    def ready() -> bool:
        if not port:
            return "ready" in log.read_text()
        try:
            socket.create_connection((address, port), 1).close()
        except OSError:
            return False
        return True

    return ready


def start(service: Service, ready: Callable[[], bool]) -> None:
    if service.running() is None:
        service.start()
        service.wait_ready(ready, SECONDS)


def up(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Each process has its own address in this network namespace, which the hosts reach through their gateway.
    for address in ADDRESSES:
        subprocess.run(["ip", "address", "replace", f"{address}/32", "dev", "lo"], check=True)
    if not (folder / "vipu-server.db").exists():
        command = [BIN / "vipu-server", "--database", folder / "vipu-server.db", "--init"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for service, ready in services(folder).values():
        start(service, ready)


def down(folder: Path) -> None:
    for service, _ready in services(folder).values():
        service.stop()
    for address in ADDRESSES:  # some may not exist
        subprocess.run(
            ["ip", "address", "delete", f"{address}/32", "dev", "lo"], stderr=subprocess.DEVNULL, check=False
        )


async def serve_pdu(address: str) -> None:
    reader = User("reader", "reader-authentication", "reader-encryption")
    pdu = Pdu("pdu1", "AP8886", lambda: {1: 1000.0, 8: 230.0}, Credentials((reader,)), None)
    await serve(pdu, address, 1161, trap_port=9)
    print("ready", flush=True)
    await asyncio.Event().wait()


def receive(address: str, file: Path) -> None:
    """Append each received alert to the file as one line of JSON."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            notification = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with file.open("a") as output:
                for alert in notification["alerts"]:
                    output.write(
                        json.dumps({"status": alert["status"], **alert["labels"], **alert["annotations"]}) + "\n"
                    )
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    HTTPServer((address, 9099), Handler).serve_forever()


def main() -> None:
    folder, verb, *rest = Path(sys.argv[1]), *sys.argv[2:]
    if verb == "up":
        up(folder)
    elif verb == "down":
        down(folder)
    elif verb == "stop":
        services(folder)[rest[0]][0].stop()
    elif verb == "start":
        start(*services(folder)[rest[0]])
    elif verb == "serve-pdu":
        asyncio.run(serve_pdu(rest[0]))
    elif verb == "receive":
        receive(rest[0], Path(rest[1]))


if __name__ == "__main__":
    main()
