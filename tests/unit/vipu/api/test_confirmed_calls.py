# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of a controller that may no longer lead are not returned."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from openipu.vipu.api.auth import UNAUTHENTICATED_ADMINISTRATOR
from openipu.vipu.api.methods import Method
from openipu.vipu.domain.errors import Code, RuleError
from openipu.vipu.storage.interface import LeadershipLostError, NotLeaderError


def behaviour(request: Any, caller: Any) -> str:
    if request == "unwritten":
        raise NotLeaderError
    if request == "missing":
        raise RuleError(Code.NOT_FOUND, "Cannot get it.")
    return "reply"


def method(name: str, leads: bool) -> Method:
    def confirm() -> None:
        if not leads:
            raise LeadershipLostError

    made = Method(name, grpc.unary_unary_rpc_method_handler(behaviour), lambda code, seconds: None)
    made.confirm = confirm
    return made


@pytest.mark.parametrize("name", ["/s/GetPartition", "/s/RemovePartition"])
@pytest.mark.parametrize("request_", ["present", "missing"])
def test_a_former_leader_returns_neither_replies_nor_errors(name: str, request_: str) -> None:
    with pytest.raises(LeadershipLostError):
        method(name, leads=False).call(request_, UNAUTHENTICATED_ADMINISTRATOR)


def test_a_leader_returns_both() -> None:
    leader = method("/s/GetPartition", leads=True)
    assert leader.call("present", UNAUTHENTICATED_ADMINISTRATOR) == "reply"
    with pytest.raises(RuleError):
        leader.call("missing", UNAUTHENTICATED_ADMINISTRATOR)


def test_a_former_leader_says_that_it_changed_nothing() -> None:
    with pytest.raises(NotLeaderError):
        method("/s/RemovePartition", leads=False).call("unwritten", UNAUTHENTICATED_ADMINISTRATOR)
