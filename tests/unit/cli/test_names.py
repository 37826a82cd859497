# SPDX-License-Identifier: GPL-3.0-or-later
"""The names that people write and read, against the contracts they stand for."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu import names
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin, virmgrpc


@pytest.mark.parametrize(
    ("mine", "contract", "prefix"),
    [
        (names.ROUTING, virmgrpc.IpuLinkRoutingType, "IRT_"),
        (names.GW_ROUTING, virmgrpc.GatewayRoutingType, "GRT_"),
        (names.READY, virmgrpc.PartitionReadyState, "PS_"),
        (names.OPERATION, virmgrpc.PartitionOperationState, "POS_"),
        (names.SYNC_TYPE, virmgrpc.SyncType, "ST_"),
        (names.TOPOLOGY, admin.IpuLinkTopology, "IPU_LINK_TOPOLOGY_"),
        (names.CLUSTER_TOPOLOGY, admin.GwLinkTopology, "GW_LINK_TOPOLOGY_"),
        (names.ROLE, admin.Role, "ROLE_"),
        (names.KIND, admin.Kind, "KIND_"),
        (names.OUTCOME, admin.Outcome, "OUTCOME_"),
    ],
    ids=lambda value: getattr(value, "what", ""),
)
def test_every_value_of_the_contract_has_its_name(mine: names.Names, contract: Any, prefix: str) -> None:
    numbers = {name.removeprefix(prefix): contract.Value(name) for name in list(contract.keys())}
    wanted = {name: number for name, number in numbers.items() if number}
    assert {mine.number(text) for text in mine.choices} == set(wanted.values())
    assert len(mine.choices) == len(wanted)
    for name, number in wanted.items():
        text = mine.text(number)
        assert mine.number(text) == mine.number(text.upper()) == mine.number(text.lower()) == number
        if mine is names.SYNC_TYPE:  # its names are Graphcore's command line's, and those of the API besides
            assert mine.number(name.lower().replace("_", "-")) == number
        else:
            assert text.upper() == name


def test_no_name_leaves_the_choice_to_the_controller() -> None:
    assert names.ROUTING.number(None) == 0 and names.ROUTING.text(0) == ""


def test_a_value_that_a_newer_controller_sends_is_shown_as_it_is() -> None:
    assert names.ROUTING.text(9) == "9"


def test_an_unknown_name_is_one_sentence_with_all_choices() -> None:
    with pytest.raises(ValueError, match=r"^There is no GW-Link routing 'up': choose from ring, swring\.$"):
        names.GW_ROUTING.number("up")
