# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy with the configuration of the page leads clients with one address to the leader."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import admin
from openipu.vipu.cli.settings import read_connection
from tests import ROOT
from tests.docs.blocks import blocks
from tests.ha.controllers import Controller, Controllers
from tests.integration.vipu_servers import run
from tests.waiting import until

PAGE = ROOT / "docs/how-to/high-availability.md"
PROXY, *HOSTS = "127.1.1.10", "127.1.1.11", "127.1.1.12"  # those of the page, on loopback
PROGRAM = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")


def configuration(folder: Path, certs: Path, port: int) -> str:
    """Return the configuration of the page for loopback, with a common port and the files of ``folder``."""
    text, commands = (block.text for block in blocks(PAGE) if "/etc/haproxy" in block.text)
    subprocess.run(commands.replace("/etc/haproxy", str(folder)), shell=True, check=True, cwd=certs)
    return text.replace(" 10.1.1.1", " 127.1.1.1").replace(":8090", f":{port}").replace("/etc/haproxy", str(folder))


class Haproxy:
    """Two secure controllers, HAProxy in front of them, and the connection of a client to HAProxy."""

    def __init__(self, folder: Path, url: str) -> None:
        assert PROGRAM, "haproxy is not installed: apt install haproxy"
        certs = folder / "certs"
        names = [word for host in (PROXY, *HOSTS) for word in ("--tls-san", host)]
        created = run(
            *("--init", "--secure", "--tls-init", str(certs), *names),
            *("--store", url, "--database", str(folder / "vipu-server.db")),
        )
        assert created.returncode == 0, created.stderr
        client = certs / "client"
        files = [(client / name).read_bytes() for name in ("ca.crt", "client.key", "client.crt")]
        self.controllers = Controllers(
            folder,
            url,
            options=("--secure", "--certs", str(certs)),
            hosts=HOSTS,
            initialise=False,
            credentials=grpc.ssl_channel_credentials(*files),
        )
        port = self.controllers.all[0].port
        self._log = folder / "haproxy.log"
        try:
            file = folder / "haproxy.cfg"
            file.write_text(configuration(folder, certs, port))
            with self._log.open("wb") as log:
                self._process = subprocess.Popen([PROGRAM, "-db", "-f", str(file)], stdout=log, stderr=log)
        except BaseException:
            self.controllers.close()
            raise
        self.connection = replace(
            read_connection(folder / "admin.vipu-cli.hcl"),
            host=PROXY,
            port=port,
            timeout=5.0,
            ca_path=str(client / "ca.crt"),
            client_cert=str(client / "client.crt"),
            client_key=str(client / "client.key"),
        )

    def logs(self) -> str:
        return f"{self._log.read_text()}\n{self.controllers.logs()}"

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self.controllers.close()


@pytest.fixture
def haproxy(url: str, tmp_path: Path) -> Iterator[Haproxy]:
    made = Haproxy(tmp_path, url)
    yield made
    made.close()


def add(client: Client, id: str) -> None:
    """Register an agent that nothing listens for. Raises VipuError."""
    agent = admin.AgentSpec(id=id, host=f"{id}.invalid")
    assert client.call(client.admin.Apply, admin.ApplyRequest(agents=[agent])).applied


def added(client: Client, id: str) -> bool:
    """Try to register an agent. Return whether that succeeded."""
    try:
        add(client, id)
    except VipuError:
        return False
    return True


def all_lead(connection: Connection, expected: set[str]) -> bool:
    """Return whether ten new connections lead to the leader, with these agents. A follower rejects calls."""
    for _ in range(10):
        with Client(connection) as client:
            try:
                found = client.call(client.admin.ListAgents, admin.ListAgentsRequest()).agents
            except VipuError:
                return False
        assert {each.spec.id for each in found} == expected
    return True


@pytest.mark.parametrize("end", [Controller.kill, Controller.pause], ids=["kill", "pause"])
def test_a_client_goes_on_when_the_leader_fails(haproxy: Haproxy, end: Callable[[Controller], None]) -> None:
    with Client(haproxy.connection) as client:
        until(lambda: added(client, "before"), 60, haproxy.logs)
        # HAProxy uses all controllers until the first checks have failed.
        until(lambda: all_lead(haproxy.connection, {"before"}), 60, haproxy.logs)
        leader = haproxy.controllers.wait_leader()
        end(leader)
        until(lambda: added(client, "after"), 60, haproxy.logs)
    assert haproxy.controllers.wait_leader() is not leader
    until(lambda: all_lead(haproxy.connection, {"before", "after"}), 60, haproxy.logs)
