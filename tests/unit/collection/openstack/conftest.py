# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of all tests of OpenStack tasks."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common import writer


@pytest.fixture(autouse=True)
def without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no state of the fake cloud."""
    monkeypatch.setattr(writer, "_POLL_INTERVAL", 0)
