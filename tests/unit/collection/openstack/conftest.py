# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of all tests of OpenStack tasks."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common import writer

from tests.unit.collection.openstack.cloud_server import CloudServer


@pytest.fixture(autouse=True)
def without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no state of the fake cloud."""
    monkeypatch.setattr(writer, "_POLL_INTERVAL", 0)


@pytest.fixture
def services() -> Iterator[CloudServer]:
    """Running server with the parts of a cloud that openstacksdk itself needs."""
    with CloudServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
