# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches and PDUs of the bare-host run: twins on addresses of the management network.

``python -m tools.bare_hosts.devices POD_YML FOLDER`` runs in the environment of the hosts (``tools.hosts run``) until
SIGTERM. It adds the addresses of the devices to the interface of the management network.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from openipu.shared.pod.load import load
from openipu.twin.launch import rack_config

SOCKET = "control.sock"  # exists when all devices are ready


@click.command()
@click.argument("pod_yml", type=click.Path(path_type=Path, exists=True))
@click.argument("folder", type=click.Path(path_type=Path, exists=True, resolve_path=True))
def main(pod_yml: Path, folder: Path) -> None:
    """Run the switches and PDUs of POD_YML, with their state in FOLDER."""
    config = rack_config.rack(load(str(pod_yml)))
    for cluster in config["clusters"]:
        for machine in cluster["machines"]:
            # The agents run on hosts. These machines are only loads of the PDUs.
            machine.update(host="127.0.0.1", port=0, rnic_address="", metrics_port=None)
    for device in (*config["devices"]["switches"], *config["devices"]["pdus"]):
        _ip("address", "replace", f"{device['host']}/32", "dev", _interface_to(device["host"]))
    file = folder / "rack.json"
    file.write_text(json.dumps(config))
    command = [sys.executable, "-m", "openipu.twin.rack.main", "--config", str(file), "--socket", str(folder / SOCKET)]
    sys.exit(subprocess.run(command, check=False).returncode)  # noqa: S603  program of this project


def _interface_to(address: str) -> str:
    """Return the interface of the network of an address."""
    routes: list[dict[str, Any]] = json.loads(_ip("-json", "route", "show", "match", address))
    return next(str(route["dev"]) for route in routes if route["dst"] != "default")


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout  # noqa: S603, S607


if __name__ == "__main__":
    main()
