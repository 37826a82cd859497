#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for Graphcore's ``rack_tool``, which is not available: the same command line for other machines.

Commands and options are those of its public manual. The format of its configuration file is not public; here it is
an object with a list of machines. The program in the key ``stand_in`` of the configuration runs the command of one
machine. Its arguments are the command, the name of the machine, its address on gw, and the arguments of the command.
This file uses the standard library only, so that it runs on any host.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

COMMANDS = (
    "bist",
    "bmc-factory-reset",
    "hostname",
    "install-key",
    "logging-server",
    "power-cycle",
    "power-off",
    "power-on",
    "run-command",
    "status",
    "update-root-overlay",
    "upgrade",
    "vipu-test",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="rack_tool.py")
    parser.add_argument("--version", action="version", version="stand-in")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in COMMANDS:
        command = commands.add_parser(name)
        command.add_argument("--config-file", required=True, type=Path)
        command.add_argument("--log-dir")
        if name == "upgrade":
            command.add_argument("--component", nargs="*")
            command.add_argument("--gw-root-overlay")
            command.add_argument("--golden", action="store_true")
            command.add_argument("--sftp", action="store_true")
        if name == "status":
            command.add_argument("--no-color", action="store_true")
            command.add_argument("--show-running-version", action="store_true")
            command.add_argument("--show-json", action="store_true")
        if name == "logging-server":
            command.add_argument("-a", "--address", required=True)
            command.add_argument("-p", "--port", required=True)
        if name in ("logging-server", "run-command"):
            command.add_argument("-d", "--device", required=True, choices=["bmc", "gw"])
        if name == "run-command":
            command.add_argument("-c", "--command", dest="line", required=True)
    arguments = parser.parse_args()
    config = json.loads(arguments.config_file.read_text())
    more = {
        "logging-server": lambda: [arguments.device, arguments.address, arguments.port],
        "run-command": lambda: [arguments.device, arguments.line],
    }.get(arguments.command, list)()
    failed = 0
    for machine in config["machines"]:
        done = subprocess.run(
            [*config["stand_in"], arguments.command, machine["name"], machine["gw_ip"], *more],
            capture_output=True,
            text=True,
            check=False,
        )
        sys.stdout.write(done.stdout)
        if done.returncode:
            failed += 1
            print(f"{machine['name']}: {arguments.command} failed: {done.stderr.strip()}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
