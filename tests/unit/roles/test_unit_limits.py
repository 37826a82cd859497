# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of memory in the units of the services: a flood must not take the memory of the host."""

from __future__ import annotations

import re

import pytest
import yaml

from tests import ROOT

ROLES = ROOT / "roles"
UNITS = (("vipu_server", "vipu-server.service.j2"), ("virm_agent", "virm-agent@.service.j2"))


@pytest.mark.parametrize(("role", "unit"), UNITS)
def test_the_memory_of_a_service_is_limited(role: str, unit: str) -> None:
    text = (ROLES / role / "templates" / unit).read_text()
    (variable,) = re.findall(r"(?m)^MemoryMax=\{\{ (\w+) \}\}$", text)
    default = yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text())[variable]
    assert re.fullmatch(r"[1-9][0-9]*[MG]", default)
