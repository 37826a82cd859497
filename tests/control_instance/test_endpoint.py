# SPDX-License-Identifier: GPL-3.0-or-later
"""The endpoint of the control instance: HAProxy with the rendered configuration, and a real controller."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_instance.controller import (
    ADMINISTRATOR,
    MACHINE,
    check_partition_of_tenant,
    client,
    create_allocations,
    start_agent,
    start_controller,
)
from tests.control_instance.lan import CONTROL, Host, Lan
from tests.control_instance.rendering import ADDRESS, CONTROLLER, files, render
from tests.integration.bringup.own_twin import BIN
from tests.waiting import until

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not shutil.which("haproxy", path="/usr/sbin"), reason="not installed: haproxy"),
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

# Sends a complete request, and incomplete ones over other connections. Prints how many of these HAProxy closed, and
# whether the first connection is open.
_INCOMPLETE = """
import socket, sys
preface = b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + b"\\0\\0\\0\\4\\0\\0\\0\\0\\0"
request = b"\\0\\0\\x06\\1\\5\\0\\0\\0\\1" + b"\\x82\\x86\\x84\\x41\\x01a"
texts = [preface + request, b"", b"PRI * HT", preface, preface + request[:-1], b"POST / HTTP/1.1\\r\\n"]
complete, *incomplete = connections = [socket.create_connection((sys.argv[1], 8090), 30) for _ in texts]
for connection, text in zip(connections, texts):
    connection.sendall(text)
for connection in incomplete:
    while connection.recv(4096):
        pass
complete.setblocking(False)
try:
    while complete.recv(4096):
        pass
except BlockingIOError:
    print(len(incomplete), "open")
"""


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    created = Lan(tmp_path)
    yield created
    created.close()


def start_endpoint(lan: Lan, instance: Host, tenant: Host, secure: bool) -> Path:
    """Start HAProxy with the rendered configuration. Returns the file with its log, which has no syslog daemon here."""
    rendered = files(render(lan.folder, control_instance_controller_secure=secure))["/etc/haproxy/haproxy.cfg"]
    assert "log /dev/log local0" in rendered
    configuration = lan.folder / "haproxy.cfg"
    configuration.write_text(rendered.replace("log /dev/log local0", "log stdout format raw local0"))
    endpoint = lan.start(instance, "haproxy", "haproxy", "-db", "-f", configuration)
    lan.wait_port(endpoint, tenant, ADDRESS, 8090)
    return lan.folder / "haproxy.log"


def test_only_tls_reaches_a_secure_controller(lan: Lan, tmp_path: Path) -> None:
    instance = lan.host(control=[f"{ADDRESS}/24"], machines=["10.1.2.151/24"])
    tenant, site = lan.host(control=["10.4.0.20/24"]), lan.host(machines=[f"{CONTROLLER}/24"])
    start_controller(lan, site)
    log = start_endpoint(lan, instance, tenant, secure=True)

    def connections(backend: str) -> int:
        return sum(f" tenant {backend} " in line for line in log.read_text().splitlines())

    def vipu(user: str) -> int:
        return client(tenant, tmp_path, ADDRESS, user, "vipu", "list", "partitions").returncode

    assert vipu(ADMINISTRATOR) == 0
    until(lambda: connections("controller/controller") > 0, 30, log.read_text)
    encrypted, rejected = connections("controller/controller"), connections("tenant/<NOSRV>")
    assert vipu("") != 0
    until(lambda: connections("tenant/<NOSRV>") > rejected, 30, log.read_text)
    assert connections("controller/controller") == encrypted


def test_a_user_of_the_tenant_creates_and_removes_a_partition(lan: Lan, tmp_path: Path) -> None:
    instance = lan.host(control=[f"{ADDRESS}/24"], machines=["10.1.2.151/24"])
    tenant, site = lan.host(control=["10.4.0.20/24"]), lan.host(machines=[f"{CONTROLLER}/24"])
    start_controller(lan, site)
    start_agent(lan, lan.host(machines=[f"{MACHINE}/24"]), site)
    create_allocations(site, tmp_path)
    start_endpoint(lan, instance, tenant, secure=True)
    check_partition_of_tenant(tenant, tmp_path)


def test_only_the_user_api_of_an_open_controller(lan: Lan, tmp_path: Path) -> None:
    instance = lan.host(control=[f"{ADDRESS}/24"], machines=["10.1.2.151/24"])
    tenant, other = lan.host(control=["10.4.0.20/24"]), lan.host(control=["10.1.5.20/24"])
    site = lan.host(machines=[f"{CONTROLLER}/24"])
    server = (BIN / "vipu-server", "--database", tmp_path / "db")
    site.run(*map(str, (*server, "--init")))
    controller = lan.start(site, "controller", *server, "--host", CONTROLLER, "--insecure-network")
    lan.wait_port(controller, site, CONTROLLER, 8090)
    start_endpoint(lan, instance, tenant, secure=False)

    def call(host: Host, *line: str) -> subprocess.CompletedProcess[str]:
        words = host.command("env", f"VIPU_CLI_API_HOST={ADDRESS}", str(BIN / line[0]), *line[1:])
        return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)

    partitions, allocations = call(tenant, "vipu", "list", "partitions"), call(tenant, "vipu", "list", "allocations")
    assert (partitions.returncode, allocations.returncode) == (0, 0), partitions.stdout + allocations.stdout
    rejected = call(tenant, "vipu-admin", "create", "agent", "a1", "--host", "10.1.2.1", "--port", "8080")
    assert rejected.returncode != 0, rejected.stdout
    # The client of another network has a route to the endpoint, and the endpoint one back.
    for host, target in ((other, "10.4.0.0/24"), (instance, "10.1.5.0/24")):
        host.run("ip", "route", "add", target, "dev", CONTROL)
    assert call(other, "vipu", "list", "partitions").returncode != 0


def test_incomplete_requests_end_and_idle_connections_stay(lan: Lan) -> None:
    instance, tenant = lan.host(control=[f"{ADDRESS}/24"]), lan.host(control=["10.4.0.20/24"])
    start_endpoint(lan, instance, tenant, secure=False)
    assert tenant.run(sys.executable, "-c", _INCOMPLETE, ADDRESS) == "5 open\n"


@pytest.mark.parametrize("secure", [False, True])
def test_haproxy_has_no_warnings(tmp_path: Path, secure: bool) -> None:
    rendered = files(render(tmp_path, control_instance_controller_secure=secure))["/etc/haproxy/haproxy.cfg"]
    (tmp_path / "haproxy.cfg").write_text(rendered)
    line = ("haproxy", "-c", "-V", "-f", tmp_path / "haproxy.cfg")
    done = subprocess.run(line, capture_output=True, text=True, env={"PATH": "/usr/sbin"}, timeout=60)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "Configuration file is valid\n")
