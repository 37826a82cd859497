# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the public user API of a running controller."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import grpc
import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api import public
from tests.integration.vipu_servers import Client, InProcess, InstantLife, partition, pod, ready_state, wait_active


def rejection(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), caught.value.details()


def listed(client: Client, allocation: str = "") -> list[str]:
    reply = client.user.ListPartitions(virmgrpc.ListPartitionsRequest(allocation_id=allocation))
    return sorted(partition.id for partition in reply.partitions)


def remove(client: Client, id: str, force: bool = False) -> None:
    client.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id=id, force=force))


def config(client: Client, id: str, gcd: int | None = None) -> object:
    request = virmgrpc.GetPartitionIpuofConfigRequest(partition_id=id)
    if gcd is not None:
        request.gcd_id.id = gcd
    return client.user.GetPartitionIpuofConfig(request).ipuof_config


def test_version(instant_server: InProcess) -> None:
    assert instant_server.version.GetVersion(virmgrpc.VersionRequest()).version == "0.1.0"


def test_partition_from_create_to_remove(instant_server: InProcess) -> None:
    pod(instant_server)
    reply = instant_server.user.CreatePartition(partition("p1", 4, num_gcds=2, reconfigurable=True))
    assert reply.partition_id == "p1"
    wait_active(instant_server, "p1")
    status = instant_server.user.GetPartitionStatus(virmgrpc.GetPartitionStatusRequest(partition_id="p1")).status
    assert (status.partition_id, status.operation_state) == ("p1", virmgrpc.POS_IDLE)
    assert (status.max_auto_reset_retries, status.auto_reset_retry_count) == (3, 0)
    assert not status.HasField("last_auto_reset_time")
    (found,) = instant_server.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions
    assert found.ready_state == virmgrpc.PS_ACTIVE
    assert found.ipuof_server_version == "v1.3.3"
    spec = found.spec
    assert (spec.cluster_id, spec.allocation_id) == ("cl0", "a1")
    assert (spec.num_gcds, spec.num_replicas, spec.num_ipulink_segments) == (2, 2, 1)
    assert (spec.ipulink_routing_type, spec.sync_type) == (virmgrpc.IRT_DNC, virmgrpc.ST_GS2_DEFAULT)
    assert spec.reconfigurable
    # Id 0 is IPU 3 of the lowest machine.
    assert [(ipu.topology_id % 4, ipu.routing_id) for ipu in spec.ipus] == [(3, 0), (2, 1), (1, 2), (0, 3)]
    remove(instant_server, "p1")
    assert listed(instant_server) == []
    code, message = rejection(lambda: ready_state(instant_server, "p1"))
    assert code is grpc.StatusCode.NOT_FOUND
    assert message == "Cannot get the status of partition 'p1': partition 'p1' does not exist."


def test_the_log_has_the_allocation_that_the_controller_chose(
    instant_server: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The published reply has no field for it. Administrators get IPUs of any allocation."""
    lines: list[dict[str, str]] = []
    log = SimpleNamespace(info=lambda event, **more: lines.append({"event": event, **more}))
    monkeypatch.setattr(public, "_log", log)
    pod(instant_server, 3, allocations={"a1": 2, "a2": 1})
    instant_server.user.CreatePartition(partition("p1", 4, ""))
    instant_server.user.CreatePartition(partition("p2", 4, "a1"))
    assert lines == [{"event": "allocation chosen", "partition": "p1", "allocation": "a2", "user": ""}]


def test_lists_by_allocation_follow_changes(instant_server: InProcess) -> None:
    pod(instant_server, allocations={"a1": 8, "a2": 8})
    for id, allocation in (("p1", "a1"), ("p2", "a2"), ("p3", "a2")):
        instant_server.user.CreatePartition(partition(id, 1, allocation))
    assert listed(instant_server) == ["p1", "p2", "p3"]
    assert listed(instant_server, "a2") == ["p2", "p3"]
    assert listed(instant_server, "nothing") == []
    # A new partition with the same id replaces the old one in the list.
    remove(instant_server, "p1")
    instant_server.user.CreatePartition(partition("p1", 8, "a1"))
    reply = instant_server.user.ListPartitions(virmgrpc.ListPartitionsRequest(allocation_id="a1"))
    assert [len(found.spec.ipus) for found in reply.partitions] == [8]


def test_ipuof_config_has_every_ipu_in_exactly_one_gcd(instant_server: InProcess) -> None:
    pod(instant_server)
    instant_server.user.CreatePartition(partition("p1", 8, num_gcds=4, num_replicas=8))
    wait_active(instant_server, "p1")
    whole = config(instant_server, "p1")
    assert (whole.ipulink_routing_type, whole.sync_type) == (virmgrpc.IRT_DNC, virmgrpc.ST_GS2_DEFAULT)
    assert (whole.num_ipulink_segments, whole.ipuof_server_version) == (1, "v1.3.3")
    assert [gcd.attributes["GCD Id"] for gcd in whole.gcd_configs] == ["0", "1", "2", "3"]
    assert [len(gcd.devices) for gcd in whole.gcd_configs] == [2, 2, 2, 2]
    assert [device.routing_id for gcd in whole.gcd_configs for device in gcd.devices] == list(range(8))
    assert [device.ipu_id for gcd in whole.gcd_configs for device in gcd.devices] == [3, 2, 1, 0] * 2
    for gcd in range(4):
        (one,) = config(instant_server, "p1", gcd).gcd_configs
        assert one == whole.gcd_configs[gcd]
    code, message = rejection(lambda: config(instant_server, "p1", 4))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert message == (
        "Cannot get the IPUoF configuration of partition 'p1': there is no GCD 4; it has 4, counted from 0."
    )


def test_reconfigurable_partitions_have_an_attribute(instant_server: InProcess) -> None:
    pod(instant_server)
    for id, reconfigurable in (("p1", True), ("p2", False)):
        instant_server.user.CreatePartition(partition(id, 4, num_gcds=2, reconfigurable=reconfigurable))
        wait_active(instant_server, id)
    name = "Fabric Reconfigurable"
    assert [gcd.attributes[name] for gcd in config(instant_server, "p1").gcd_configs] == ["1", "1"]
    assert not any(name in gcd.attributes for gcd in config(instant_server, "p2").gcd_configs)


def test_without_automatic_resets_there_are_no_retries(instant_server: InProcess) -> None:
    pod(instant_server)
    request = partition("p1", 1)
    request.disable_auto_reset = True
    instant_server.user.CreatePartition(request)

    def retries() -> int:
        status = instant_server.user.GetPartitionStatus(virmgrpc.GetPartitionStatusRequest(partition_id="p1")).status
        return int(status.max_auto_reset_retries)

    assert retries() == 0
    instant_server.tenant.SetPartitionOptions(admin.SetPartitionOptionsRequest(partition_id="p1"))
    assert retries() == 3


def test_no_ipuof_config_before_active(vipu_server: Callable[..., InProcess]) -> None:
    class Slow(InstantLife):
        configures = False

    server = vipu_server(life=Slow)
    pod(server)
    server.user.CreatePartition(partition("p1"))
    code, message = rejection(lambda: config(server, "p1"))
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert message == "Cannot get the IPUoF configuration of partition 'p1': it is PENDING, not ACTIVE."


def test_reset_calls_the_partition_life(instant_server: InProcess) -> None:
    pod(instant_server)
    instant_server.user.CreatePartition(partition("p1"))
    wait_active(instant_server, "p1")
    instant_server.life.configures = False
    instant_server.user.ResetPartition(virmgrpc.ResetPartitionRequest(partition_id="p1"))
    status = instant_server.user.GetPartitionStatus(virmgrpc.GetPartitionStatusRequest(partition_id="p1")).status
    assert (status.ready_state, status.operation_state) == (virmgrpc.PS_PENDING, virmgrpc.POS_RESETTING)


def test_options_that_are_not_in_the_public_api(instant_server: InProcess) -> None:
    pod(instant_server)
    tenant = instant_server.tenant
    request = partition("p1")
    request.relocatable = True
    instant_server.user.CreatePartition(request)
    instant_server.user.CreatePartition(partition("p2"))
    wait_active(instant_server, "p1")

    def options_of(*ids: str) -> list[tuple[str, bool, bool]]:
        reply = tenant.ListPartitionOptions(admin.ListPartitionOptionsRequest(partition_ids=ids))
        return [(each.partition_id, each.disable_auto_reset, each.relocatable) for each in reply.partitions]

    assert options_of() == [("p1", False, True), ("p2", False, False)]
    assert options_of("p2", "gone", "p2") == [("p2", False, False)]
    change = admin.SetPartitionOptionsRequest(partition_id="p1", disable_auto_reset=True)
    assert [tenant.SetPartitionOptions(change).changed for _ in range(2)] == [True, False]
    assert options_of("p1") == [("p1", True, False)]
    assert ready_state(instant_server, "p1") == virmgrpc.PS_ACTIVE  # without a reset
    assert rejection(lambda: tenant.SetPartitionOptions(admin.SetPartitionOptionsRequest(partition_id="p3"))) == (
        grpc.StatusCode.NOT_FOUND,
        "Cannot change partition 'p3': partition 'p3' does not exist.",
    )


def test_attributes_of_ipus(instant_server: InProcess) -> None:
    pod(instant_server, 4)
    instant_server.life.down = frozenset({"ag02"})
    reply = instant_server.user.ListIPUAttributes(virmgrpc.ListIPUAttributesRequest())
    assert [entry.agent for entry in reply.entries] == ["ag01", "ag03", "ag04"]
    assert reply.entries[0].ipu_attributes[3].attributes["ipu"] == "3"
    reply = instant_server.user.ListIPUAttributes(virmgrpc.ListIPUAttributesRequest(agents=["ag03", "ag03"]))
    assert [entry.agent for entry in reply.entries] == ["ag03"]
    assert rejection(
        lambda: instant_server.user.ListIPUAttributes(virmgrpc.ListIPUAttributesRequest(agents=["x"]))
    ) == (
        grpc.StatusCode.NOT_FOUND,
        "Cannot list IPU attributes: agent 'x' does not exist.",
    )


def test_rules_become_status_codes(instant_server: InProcess) -> None:
    pod(instant_server, 4)
    create = instant_server.user.CreatePartition
    create(partition("p1", 16))
    assert rejection(lambda: create(partition("p1"))) == (
        grpc.StatusCode.ALREADY_EXISTS,
        "Cannot create partition 'p1': a partition with this id already exists. Choose another id.",
    )
    assert rejection(lambda: create(partition("p2")))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert rejection(lambda: create(partition("p2", 3)))[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert rejection(lambda: create(partition("p2", 1, "nowhere")))[0] is grpc.StatusCode.NOT_FOUND
    instant_server.life.down = frozenset({"ag01"})
    assert rejection(lambda: remove(instant_server, "p1"))[0] is grpc.StatusCode.FAILED_PRECONDITION
    remove(instant_server, "p1", force=True)


def test_public_services_only(vipu_server: Callable[..., InProcess]) -> None:
    server = vipu_server(life=InstantLife, public_only=True)
    assert listed(server) == []
    for call in (
        lambda: server.admin.ListAgents(admin.ListAgentsRequest()),
        lambda: server.tenant.ListAllocations(admin.ListAllocationsRequest()),
    ):
        assert rejection(call)[0] is grpc.StatusCode.UNIMPLEMENTED


def test_many_concurrent_calls_on_one_connection(instant_server: InProcess) -> None:
    request = virmgrpc.ListPartitionsRequest()
    for _ in range(3):
        calls = [instant_server.user.ListPartitions.future(request, timeout=60) for _ in range(250)]
        assert [call.exception() for call in calls] == [None] * len(calls)
