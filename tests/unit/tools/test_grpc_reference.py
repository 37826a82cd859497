# SPDX-License-Identifier: GPL-3.0-or-later
"""Reference of the gRPC APIs: every method of the own contracts has a description."""

from __future__ import annotations

import re

import pytest

from tools.reference.grpc_api import pages


@pytest.mark.parametrize("page", ["admin-api", "agent-api", "twin-api"])
def test_every_method_has_a_description(page: str) -> None:
    services = re.split("(?m)^## (?:Enumerations|Messages)$", pages()[f"grpc/{page}.md"])[0]
    methods = [line for line in services.splitlines() if line.startswith("| `")]
    assert methods
    assert [line for line in methods if line.count(" | ") != 3 or line.endswith(" |  |")] == []
