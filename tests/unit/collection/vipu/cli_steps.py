# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of several releases of the command lines, and steps of plans to write with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, Failure, ItemError, Step
from ansible_collections.openipu.pod.plugins.module_utils.vipu import resources
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Connection, VipuError
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.command_line import CliTransport

from tests.unit.collection.vipu.recorded import Recorded

OLDER_PARTITIONS = """\
 Partition   | Cluster  | ILDs | GW Routing | ILD Routing | Size | GCDs | State
---------------------------------------------------------------------------------
 p64         | c64_1-16 | 1    | DEFAULT    | RINGSWNC    | 64   | 2    | ACTIVE
---------------------------------------------------------------------------------
"""
NEWER_PARTITIONS = """\
------------------------------------------------------------------
 Allocation | Cluster | Partition | ILDs | Size | GCDs | State
------------------------------------------------------------------
 a1         | cl0     | p1        | 1    | 4    | 1    | PS_PENDING
------------------------------------------------------------------
"""
AGENT_1 = """\
 Agent ID | ag1
 Host     | 10.1.5.1
 Port     | 8081
 Status   | Up
 Exporter | http://10.1.5.1:2112/metrics
-----------------------------------
 IPU | PCI       | Num Tiles
-----------------------------------
 0   | 0000:1a:0 | 1472
"""


def made(recorded: Recorded, **connection: Any) -> Iterator[CliTransport]:
    """Yield a transport and close it afterwards."""
    transport = CliTransport(Connection(**connection), recorded.vipu_admin, recorded.vipu)
    yield transport
    transport.close()


def step(kind: str, key: str, action: Action = Action.CREATE, before: Any = None, **desired: Any) -> Step:
    """Return a step of a plan."""
    family = next(family for family in resources.FAMILIES if family.kind == kind)
    existing = {"id": key} if action is not Action.CREATE else None
    return Step(family, key, action, before or existing, None if action is Action.DELETE else {"id": key, **desired})


def failures(errors: list[ItemError]) -> list[tuple[str, str, Failure]]:
    """Return kind, key and failure of each error."""
    return [(error.kind, error.key, error.failure) for error in errors]


def rejection(call: Callable[[], Any]) -> str:
    """Return the message of a call that fails."""
    with pytest.raises(VipuError) as caught:
        call()
    return caught.value.message
