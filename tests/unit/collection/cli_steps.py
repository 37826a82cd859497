# SPDX-License-Identifier: GPL-3.0-or-later
"""What several releases of the command lines print, and steps of plans to be written by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, Failure, ItemError, Step
from ansible_collections.openipu.pod.plugins.module_utils.vipu import resources
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Connection, VipuError
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport_cli import CliTransport
from recorded import Recorded

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
    """A transport, closed afterwards."""
    transport = CliTransport(Connection(**connection), recorded.vipu_admin, recorded.vipu)
    yield transport
    transport.close()


def step(kind: str, key: str, action: Action = Action.CREATE, before: Any = None, **wanted: Any) -> Step:
    """A step of a plan."""
    family = next(family for family in resources.FAMILIES if family.kind == kind)
    there = {"id": key} if action is not Action.CREATE else None
    return Step(family, key, action, before or there, None if action is Action.DELETE else {"id": key, **wanted})


def said(errors: list[ItemError]) -> list[tuple[str, str, Failure]]:
    """Which steps have an error, and of what sort."""
    return [(error.kind, error.key, error.failure) for error in errors]


def refusal(call: Callable[[], Any]) -> str:
    """The sentence of a call that fails."""
    with pytest.raises(VipuError) as caught:
        call()
    return caught.value.sentence
