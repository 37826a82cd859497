# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixture with a secure controller for the machines of a twin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import grpc
import psutil
import pytest

from tests.integration import vipu_servers
from tests.integration.bringup.own_twin import OwnTwin
from tests.integration.cli.cli_support import Cli

ADMINISTRATOR = "vipu-admin --config admin.vipu-cli.hcl"


def agents(cli: Cli) -> list[str]:
    """Return the names of the agents of a secure controller."""
    return [agent["id"] for agent in cli.json(f"{ADMINISTRATOR} list agents")]


def use_as_administrator(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the playbooks of the test call the secure controller as its administrator."""
    key = re.findall('api-access-key="(.+)"', (cli.home / "admin.vipu-cli.hcl").read_text())[0]
    values = {**cli.environment, "VIPU_CLI_API_USER_ID": "admin", "VIPU_CLI_API_ACCESS_KEY": key}
    for name, value in values.items():
        if name.startswith("VIPU_CLI_"):
            monkeypatch.setenv(name, value)


def take_over(cli: Cli) -> None:
    """Make the secure controller the owner of its agents."""
    for agent in agents(cli):
        cli.out(f"{ADMINISTRATOR} take-over agent {agent}")


@pytest.fixture
def secure_cli(twin: OwnTwin, tmp_path: Path) -> Iterator[Cli]:
    """Command lines for another controller of the twin, with certificates and users, in a folder with the first key.

    At the end it removes its agents, so that the controller of the twin becomes their owner again.
    """
    insecure = psutil.Process(twin.pid("controller"))
    insecure.terminate()
    insecure.wait(20)
    certs, database = tmp_path / "vipu-certs", tmp_path / "vipu-server.db"
    options = ("--database", str(database), "--host", twin.controller)
    result = vipu_servers.run("--tls-init", str(certs), "--tls-san", twin.controller, "--init", "--secure", *options)
    assert result.returncode == 0, result.stderr
    server = vipu_servers.Process(
        "--secure", "--certs", str(certs), *options, "--port", "8090", channel=grpc.ssl_channel_credentials()
    )
    try:
        files = {"CA_PATH": "ca.crt", "CLIENT_CERT": "client.crt", "CLIENT_KEY": "client.key"}
        settings = {f"VIPU_CLI_{name}": str(certs / "client" / file) for name, file in files.items()}
        cli = Cli(tmp_path, server.address, **settings)
        yield cli
        for agent in agents(cli):
            cli.out(f"{ADMINISTRATOR} remove agent {agent} --force")
    finally:
        server.stop()
        twin.twin("up")
