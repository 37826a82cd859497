# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller for the tests of module tasks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.collection.tasks import Perform, performer
from tests.integration.vipu_servers import InProcess, InstantLife, pod


@pytest.fixture
def server(vipu_server: Callable[..., InProcess]) -> InProcess:
    """Return a server with two machines in a torus, all for team-a."""
    server = vipu_server(life=InstantLife)
    pod(server, machines=2, allocations={"team-a": 2})
    return server


@pytest.fixture
def perform(server: InProcess) -> Perform:
    """Return a function that runs a task of a module with this server."""
    return performer(server)
