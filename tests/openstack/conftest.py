# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures with a real OpenStack: a running one, or a new one that is stopped after the tests."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import openstack
import pytest
from openstack.connection import Connection

from tests.openstack.network_namespace import NetworkNamespace
from tests.openstack.neutron_pod import AccessLog, Plan, run
from tests.openstack.secure_controller import secure_cli  # noqa: F401 - a fixture
from tests.openstack.vpod_order import flavor_without_host, order, play, twin  # noqa: F401 - fixtures
from tools.openstack.site import ADMIN_CLOUD, CACHE, CHECKOUT

STATE = CACHE / "cloud"


def command(*arguments: str, state: Path = STATE, seconds: float = 400) -> subprocess.CompletedProcess[str]:
    """Run `python -m tools.openstack`."""
    line = [sys.executable, "-m", "tools.openstack", *arguments, "--state-dir", str(state)]
    return subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, timeout=seconds, check=False)


@pytest.fixture(scope="session")
def cloud() -> Iterator[Path]:
    """Folder of the running cloud. The environment names its clouds.yaml."""
    was_running = STATE.exists()
    result = command("up")
    assert result.returncode == 0, result.stderr
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("OS_")]:
            environment.delenv(name)
        environment.setenv("OS_CLIENT_CONFIG_FILE", str(STATE / "clouds.yaml"))
        environment.setenv("OS_CLOUD", ADMIN_CLOUD)
        yield STATE
    if not was_running:
        result = command("down")
        assert result.returncode == 0, result.stderr


@pytest.fixture(scope="session")
def connect(cloud: Path) -> Callable[[str], Connection]:
    """Function from a name in clouds.yaml to a connection: the administrator, `tenant-a` or `tenant-b`."""
    connections: dict[str, Connection] = {}

    def connect(name: str = ADMIN_CLOUD) -> Connection:
        if name not in connections:
            connections[name] = openstack.connect(cloud=name)
        return connections[name]

    return connect


@pytest.fixture(scope="session")
def admin(connect: Callable[[str], Connection]) -> Connection:
    """Connection of the administrator."""
    return connect(ADMIN_CLOUD)


@pytest.fixture
def log(cloud: Path) -> AccessLog:
    return AccessLog(cloud / "log" / "neutron-access.log")


@pytest.fixture
def vlan() -> int:
    """First of ten VLANs that no other test uses."""
    return random.randrange(3000, 4000, 10)


@pytest.fixture
def external(admin: Connection, vlan: int) -> Iterator[str]:
    """Name of an external network."""
    name = f"outside-{vlan}"
    network = admin.network.create_network(
        name=name,
        provider_network_type="vlan",
        provider_physical_network="physnet1g",
        provider_segmentation_id=vlan + 9,
        is_router_external=True,
    )
    admin.network.create_subnet(
        name=name, network_id=network.id, ip_version=4, cidr="192.0.2.0/24", is_dhcp_enabled=False
    )
    yield name
    admin.network.delete_network(network)


@pytest.fixture
def plan(admin: Connection, tmp_path: Path, vlan: int, external: str) -> Iterator[Plan]:
    """POD with four machines for one tenant, which is removed afterwards."""
    admin.network.update_quota(
        admin.current_project_id, rbac_policies=100, security_groups=100, security_group_rules=500
    )
    created = Plan(tmp_path, vlan, external)
    yield created
    result = run(pod=created.name, state="absent")
    assert not result.get("failed"), result
    assert not [net.name for net in admin.network.networks() if net.name.startswith(created.name)]
    assert not [group.name for group in admin.network.security_groups() if group.name.startswith(created.name)]


@pytest.fixture
def namespace() -> Iterator[NetworkNamespace]:
    """Network namespace for the separate cloud of a test."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        pytest.skip("needs unshare and nsenter: apt install util-linux")
    created = NetworkNamespace()
    try:
        if not created.ready:
            pytest.skip("needs the privilege to create a network namespace")
        yield created
    finally:
        created.close()
