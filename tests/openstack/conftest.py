# SPDX-License-Identifier: GPL-3.0-or-later
"""A real OpenStack for the tests: the one that runs, or one that is started for them and ended after them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import openstack
import pytest
from openstack.connection import Connection

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
