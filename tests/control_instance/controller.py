# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure controller of the POD on server1, the agent of ipum01, and the command lines of its users."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.control_instance.lan import Host, Lan
from tests.control_instance.rendering import ADDRESS, CONTROLLER
from tests.integration.bringup.own_twin import BIN
from tests.waiting import until

MACHINE, AGENT_PORT = "10.1.2.1", 8080  # the IPU-Gateway of ipum01
PORT = 8090
ADMINISTRATOR = "admin"


def start_controller(lan: Lan, site: Host) -> None:
    """Start a secure controller, whose certificate has its address and that of the endpoint."""
    certificates = lan.folder / "certs"
    server = (BIN / "vipu-server", "--secure", "--host", CONTROLLER, "--database", lan.folder / "controller.db")
    names = ("--tls-san", CONTROLLER, "--tls-san", ADDRESS)
    site.run(*map(str, (*server, "--init", "--tls-init", certificates, *names)))
    process = lan.start(site, "controller", *server, "--certs", certificates)
    lan.wait_port(process, site, CONTROLLER, PORT)


def start_agent(lan: Lan, rack: Host, site: Host) -> None:
    """Start the agent of a simulated IPU-Machine, which the controller on server1 reaches."""
    agent = lan.start(
        rack, "agent", BIN / "virm-agent", "--host", MACHINE, "--port", str(AGENT_PORT), "--insecure-network"
    )
    lan.wait_port(agent, site, MACHINE, AGENT_PORT)


def client(host: Host, folder: Path, address: str, user: str, *line: str) -> subprocess.CompletedProcess[str]:
    """Run a command line on a host, with the access key and the certificates of a user in a folder, if any."""
    config = ("--config", f"{user}.vipu-cli.hcl") if user else ()
    place = ("env", "-C", str(folder), f"HOME={folder}")
    words = host.command(*place, str(BIN / line[0]), *config, "--api-host", address, *line[1:])
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def create_allocations(site: Host, folder: Path) -> None:
    """Create the allocation of the vPOD with the IPU-Machine, its user alice, and bob, the user of another tenant."""

    def administer(*line: str) -> subprocess.CompletedProcess[str]:
        return client(site, folder, CONTROLLER, ADMINISTRATOR, "vipu-admin", *line)

    for line in (
        ("create", "agent", "ag01", "--host", MACHINE, "--port", str(AGENT_PORT)),
        ("create", "cluster", "cl0", "--agents", "ag01"),
        ("create", "allocation", "v1", "--cluster", "cl0", "--agents", "ag01"),
        ("create", "user", "alice", "--allocations", "v1"),
        ("create", "user", "bob", "--allocations", "none"),
    ):
        done = administer(*line)
        assert done.returncode == 0, done.stdout + done.stderr
    until(lambda: " | Up " in administer("list", "agents").stdout, 60, lambda: administer("list", "agents").stdout)


def check_partition_of_tenant(tenant: Host, folder: Path) -> None:
    """Create, read and remove a partition over the endpoint as alice. Without her rights or a key, nothing works."""

    def call(user: str, *line: str) -> subprocess.CompletedProcess[str]:
        return client(tenant, folder, ADDRESS, user, "vipu", *line)

    def listed(user: str) -> list[Any]:
        done = call(user, "list", "partitions", "--output", "json")
        assert done.returncode == 0, done.stdout + done.stderr
        return [(each["id"], each["allocation"], each["state"]) for each in json.loads(done.stdout)]

    create = ("create", "partition", "p1", "--allocation", "v1", "--size", "4")
    assert listed("alice") == []
    for user in ("bob", ""):
        assert call(user, *create).returncode != 0
    created = call("alice", *create)
    assert created.returncode == 0, created.stdout + created.stderr
    assert listed("alice") == [("p1", "v1", "ACTIVE")]
    assert listed("bob") == []
    for user in ("bob", ""):
        assert call(user, "remove", "partition", "p1").returncode != 0
    removed = call("alice", "remove", "partition", "p1")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    assert listed("alice") == []
