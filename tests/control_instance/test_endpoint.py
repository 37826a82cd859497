# SPDX-License-Identifier: GPL-3.0-or-later
"""The endpoint of the control instance: HAProxy with the rendered configuration, and a real controller."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_instance.lan import CONTROL, Host, Lan
from tests.control_instance.rendering import ADDRESS, CONTROLLER, files, render
from tests.integration.bringup.own_twin import BIN

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not shutil.which("haproxy", path="/usr/sbin"), reason="not installed: haproxy"),
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    created = Lan(tmp_path)
    yield created
    created.close()


def test_only_the_user_api_of_an_open_controller(lan: Lan, tmp_path: Path) -> None:
    instance = lan.host(control=[f"{ADDRESS}/24"], machines=["10.1.2.151/24"])
    tenant, other = lan.host(control=["10.4.0.20/24"]), lan.host(control=["10.1.5.20/24"])
    site = lan.host(machines=[f"{CONTROLLER}/24"])
    server = (BIN / "vipu-server", "--database", tmp_path / "db")
    site.run(*map(str, (*server, "--init")))
    controller = lan.start(site, "controller", *server, "--host", CONTROLLER, "--insecure-network")
    lan.wait_port(controller, site, CONTROLLER, 8090)
    configuration = tmp_path / "haproxy.cfg"
    rendered = files(render(tmp_path, control_instance_controller_secure=False))
    configuration.write_text(rendered["/etc/haproxy/haproxy.cfg"])
    endpoint = lan.start(instance, "haproxy", "haproxy", "-db", "-f", configuration)
    lan.wait_port(endpoint, tenant, ADDRESS, 8090)

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
