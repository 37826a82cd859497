# SPDX-License-Identifier: GPL-3.0-or-later
"""A registry of images on the node, which containerd uses instead of the public one."""

from __future__ import annotations

import http.client
import subprocess
from pathlib import Path

import yaml

from openipu.process.background import Service
from tools.kubernetes.site import NODE_ADDRESS

PORT = 5000
ADDRESS = f"{NODE_ADDRESS}:{PORT}"
_SECONDS = 30.0


def start(folder: Path) -> Service:
    """Start the registry with its files in a folder, and wait until it responds."""
    folder.mkdir()
    config = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "images")}},
        "http": {"addr": ADDRESS},
    }
    (folder / "config.yml").write_text(yaml.safe_dump(config))
    command = ["docker-registry", "serve", str(folder / "config.yml")]
    service = Service("the registry", folder / "registry.json", folder / "registry.log", command)
    service.start()
    service.wait_ready(_responds, _SECONDS)
    return service


def push(socket: Path, image: str, name: str) -> None:
    """Push an image of containerd as ``library/NAME``, where images without a host are looked up."""
    target = f"{ADDRESS}/library/{name}"
    for arguments in (["tag", image, target], ["push", "--plain-http", target]):
        command = ["ctr", f"--address={socket}", "--namespace=k8s.io", "images", *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def _responds() -> bool:
    connection = http.client.HTTPConnection(NODE_ADDRESS, PORT, timeout=2)
    try:
        connection.request("GET", "/v2/")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()
