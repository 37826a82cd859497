# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in options and output, compared with the contracts."""

from __future__ import annotations

from typing import Any

import pytest

from openipu.shared.vipu import names
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.cluster_test.model import Test


@pytest.mark.parametrize(
    ("table", "contract", "prefix"),
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
    ],
    ids=lambda value: getattr(value, "label", ""),
)
def test_every_value_of_the_contract_has_its_name(table: names.Names, contract: Any, prefix: str) -> None:
    numbers = {name.removeprefix(prefix): contract.Value(name) for name in list(contract.keys())}
    expected = {name: number for name, number in numbers.items() if number}
    assert {table.number(text) for text in table.choices} == set(expected.values())
    assert len(table.choices) == len(expected)
    for name, number in expected.items():
        text = table.text(number)
        assert table.number(text) == table.number(text.upper()) == table.number(text.lower()) == number
        if table is names.SYNC_TYPE:  # the names of Graphcore's command line; those of the API are accepted too
            assert table.number(name.lower().replace("_", "-")) == number
        else:
            assert text.upper() == name


def test_cluster_tests_match_the_contract_and_the_controller() -> None:
    assert list(names.CLUSTER_TEST.choices) == list(Test)
    numbers = {name: admin.ClusterTest.Value(name) for name in list(admin.ClusterTest.keys())}
    assert {f"CLUSTER_TEST_{test.name}": names.CLUSTER_TEST.number(test) for test in Test} == {
        name: number for name, number in numbers.items() if number
    }


def test_no_name_is_the_default_of_the_controller() -> None:
    assert names.ROUTING.number(None) == 0 and names.ROUTING.text(0) == ""


def test_an_unknown_number_is_shown_as_a_number() -> None:
    assert names.ROUTING.text(9) == "9"


def test_the_error_for_an_unknown_name_lists_all_choices() -> None:
    with pytest.raises(
        ValueError, match=r"^Cannot use GW-Link routing 'up': it is unknown\. Choose from ring, swring\.$"
    ):
        names.GW_ROUTING.number("up")
