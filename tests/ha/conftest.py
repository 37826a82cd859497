# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of etcd for all tests, and a separate prefix for each of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from openipu.process import log
from openipu.shared.vipu.contract import admin
from openipu.vipu.storage.etcd import keys
from openipu.vipu.storage.etcd.keys import Location
from tests.ha.controllers import Controller, Controllers, agent_state, create, put_rack
from tests.ha.etcd_nodes import EtcdCluster
from tests.integration.vipu_servers import Machines
from tests.waiting import until

_numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def quiet() -> None:
    """Log warnings and errors only."""
    log.configure("text", "warning")


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(tmp_path_factory.mktemp("etcd"))
    yield cluster
    cluster.stop()


@pytest.fixture
def url(etcd: EtcdCluster) -> str:
    """URL of an empty prefix."""
    return f"{etcd.url}/test{next(_numbers)}"


@pytest.fixture
def location(url: str) -> Location:
    return keys.parse(url)


@pytest.fixture
def controllers(url: str, tmp_path: Path) -> Iterator[Controllers]:
    """Two controllers. Tests of other ones have their own fixture."""
    made = Controllers(tmp_path, url, 2)
    yield made
    made.close()


@pytest.fixture
def leader(controllers: Controllers) -> Iterator[Controller]:
    """A leader with a rack whose agents are up, and partition p0."""
    machines = Machines(2)
    found = controllers.wait_leader()
    put_rack(found.address, machines.agents)
    for agent in machines.agents:
        until(lambda id=agent.id: agent_state(found.address, id) == admin.AGENT_STATE_UP, 60, controllers.logs)
    create(found.address, "p0")
    yield found
    machines.stop()
