# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs of the twin, with real datagrams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.pdu_agents import Agents, agents_of_pdus


@pytest.fixture
def agents() -> Iterator[Agents]:
    with agents_of_pdus() as agents:
        yield agents
