# SPDX-License-Identifier: GPL-3.0-or-later
"""A real OpenStack for the tests: the one that runs, or one that is started for them and ended after them."""

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
from apart import Apart
from neutron_pod import AccessLog, Plan, run
from openstack.connection import Connection
from vpod_order import order, play, twin  # noqa: F401 - fixtures

from tools.openstack.site import ADMIN_CLOUD, CACHE, CHECKOUT

STATE = CACHE / "cloud"


def command(*arguments: str, state: Path = STATE, seconds: float = 400) -> subprocess.CompletedProcess[str]:
    """Run `python -m tools.openstack`."""
    line = [sys.executable, "-m", "tools.openstack", *arguments, "--state-dir", str(state)]
    return subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, timeout=seconds, check=False)


@pytest.fixture(scope="session")
def cloud() -> Iterator[Path]:
    """The folder of the running cloud; OpenStack's clients find its clouds.yaml in the environment."""
    ran = STATE.exists()
    done = command("up")
    assert done.returncode == 0, done.stderr
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("OS_")]:
            environment.delenv(name)
        environment.setenv("OS_CLIENT_CONFIG_FILE", str(STATE / "clouds.yaml"))
        environment.setenv("OS_CLOUD", ADMIN_CLOUD)
        yield STATE
    if not ran:
        done = command("down")
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def connect(cloud: Path) -> Callable[[str], Connection]:
    """Connections by the names in clouds.yaml: the administrator, `tenant-a`, `tenant-b`."""
    made: dict[str, Connection] = {}

    def connect(name: str = ADMIN_CLOUD) -> Connection:
        if name not in made:
            made[name] = openstack.connect(cloud=name)
        return made[name]

    return connect


@pytest.fixture(scope="session")
def admin(connect: Callable[[str], Connection]) -> Connection:
    """The administrator's connection."""
    return connect(ADMIN_CLOUD)


@pytest.fixture
def log(cloud: Path) -> AccessLog:
    return AccessLog(cloud / "log" / "neutron-access.log")


@pytest.fixture
def vlan() -> int:
    """The first of ten VLANs of one's own."""
    return random.randrange(3000, 4000, 10)


@pytest.fixture
def external(admin: Connection, vlan: int) -> Iterator[str]:
    """A network to the outside."""
    name = f"outside-{vlan}"
    made = admin.network.create_network(
        name=name,
        provider_network_type="vlan",
        provider_physical_network="physnet1g",
        provider_segmentation_id=vlan + 9,
        is_router_external=True,
    )
    admin.network.create_subnet(name=name, network_id=made.id, ip_version=4, cidr="192.0.2.0/24", is_dhcp_enabled=False)
    yield name
    admin.network.delete_network(made)


@pytest.fixture
def plan(admin: Connection, tmp_path: Path, vlan: int, external: str) -> Iterator[Plan]:
    """A POD of four machines for one tenant; nothing is left of it."""
    admin.network.update_quota(
        admin.current_project_id, rbac_policies=100, security_groups=100, security_group_rules=500
    )
    made = Plan(tmp_path, vlan, external)
    yield made
    result = run(pod=made.name, state="absent")
    assert not result.get("failed"), result
    assert not [net.name for net in admin.network.networks() if net.name.startswith(made.name)]
    assert not [group.name for group in admin.network.security_groups() if group.name.startswith(made.name)]


@pytest.fixture
def apart() -> Iterator[Apart]:
    """A network namespace for a cloud of the test's own."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        pytest.skip("needs unshare and nsenter: apt install util-linux")
    made = Apart()
    try:
        if not made.there:
            pytest.skip("needs the right to make a network namespace")
        yield made
    finally:
        made.close()
