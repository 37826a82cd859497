# SPDX-License-Identifier: GPL-3.0-or-later
"""Public API as programs of others expect it: every name and number, written out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from openipu.shared.vipu import wire
from openipu.shared.vipu.contract import virmgrpc

_SCALARS = {3: "int64", 8: "bool", 9: "str", 13: "u32"}
_MAP = "map<{},{}>"

ENUMS = {
    "IpuLinkRoutingType": {"IRT_UNDEFINED": 0, "IRT_DNC": 1, "IRT_SWNC": 2, "IRT_BTNC": 3, "IRT_RINGSWNC": 4},
    "GatewayRoutingType": {"GRT_UNDEFINED": 0, "GRT_RING": 2, "GRT_SWRING": 3},
    "SyncType": {
        "ST_UNDEFINED": 0,
        "ST_GS2_DEFAULT": 1,
        "ST_GS2_INDEPENDENT_RAILS": 2,
        "ST_POD_NATIVE_DEFAULT": 3,
        "ST_POD_NATIVE_REPLICATED_PIPELINE": 4,
    },
    "PartitionReadyState": {"PS_UNDEFINED": 0, "PS_PENDING": 1, "PS_ACTIVE": 2, "PS_REMOVED": 3, "PS_ERROR": 4},
    "PartitionOperationState": {
        "POS_UNDEFINED": 0,
        "POS_IDLE": 1,
        "POS_CREATING": 2,
        "POS_REMOVING": 3,
        "POS_RESETTING": 4,
        "POS_FAILED": 5,
    },
}

# Field name, type (with [] when repeated), number.
MESSAGES = {
    "PartitionIpu": """
        ipulink_domain_topology_id u32 1, ipulink_domain_routing_id u32 2, topology_id u32 3, routing_id u32 4""",
    "PartitionSpec": """
        cluster_id str 1, ipus [PartitionIpu] 2, ipulink_routing_type IpuLinkRoutingType 3, sync_type SyncType 4,
        num_gcds u32 5, num_ipulink_segments u32 6, reconfigurable bool 7, gw_routing_type GatewayRoutingType 8,
        num_replicas u32 9, allocation_id str 10""",
    "Partition": "id str 1, spec PartitionSpec 2, ready_state PartitionReadyState 3, ipuof_server_version str 4",
    "ListPartitionsRequest": "allocation_id str 1",
    "ListPartitionsReply": "partitions [Partition] 1",
    "PartitionRequirements": """
        id str 1, size u32 2, cluster_id str 3, ipulink_routing_type IpuLinkRoutingType 4,
        num_ipulink_segments u32 5, gw_routing_type GatewayRoutingType 6, sync_type SyncType 7, num_gcds u32 8,
        reconfigurable bool 9, num_replicas u32 10, allocation_id str 11, ipus [PartitionIpu] 12""",
    "CreatePartitionRequest": "requirements PartitionRequirements 2, disable_auto_reset bool 3, relocatable bool 5",
    "CreatePartitionReply": "partition_id str 1",
    "ResetPartitionRequest": "partition_id str 1, relocatable bool 2",
    "ResetPartitionReply": "",
    "RemovePartitionRequest": "partition_id str 1, force bool 2",
    "RemovePartitionReply": "",
    "GetPartitionIpuofConfigRequest": "partition_id str 1, gcd_id GetPartitionIpuofConfigRequest.GcdID 2",
    "GetPartitionIpuofConfigRequest.GcdID": "id u32 1",
    "GetPartitionIpuofConfigReply": "ipuof_config PartitionConfig 1",
    "PartitionConfig": """
        ipulink_routing_type IpuLinkRoutingType 2, sync_type SyncType 3, reconfigurable bool 5,
        gw_routing_type GatewayRoutingType 6, num_ipulink_segments u32 7, gcd_configs [PartitionConfig.Gcd] 8,
        ipuof_server_version str 9""",
    "PartitionConfig.Gcd": "devices [IpuofDevice] 2, attributes map<str,str> 3",
    "IpuofDevice": """
        ip str 1, server_port u32 2, rdma_port u32 3, device_id u32 4, ipulink_segment_id u32 5, routing_id u32 6,
        ipu_arch_id u32 7, ipu_id u32 8, chip_id str 9, gwsw_version str 10, ipum_sw_version str 11""",
    "PartitionStatus": """
        partition_id str 1, ready_state PartitionReadyState 2, operation_state PartitionOperationState 3,
        errors [str] 4, max_auto_reset_retries u32 5, auto_reset_retry_count u32 6,
        last_auto_reset_time google.protobuf.Timestamp 7""",
    "GetPartitionStatusRequest": "partition_id str 1",
    "GetPartitionStatusReply": "status PartitionStatus 1",
    "AllocationSpec": "cluster_id str 1, agent_ids [str] 2",
    "Allocation": "id str 1, spec AllocationSpec 2",
    "ListIPUAttributesRequest": "agents [str] 1",
    "ListIPUAttributesReply": "entries [ListIPUAttributesReply.Entry] 1",
    "ListIPUAttributesReply.Entry": "agent str 1, ipu_attributes map<u32,ListIPUAttributesReply.Entry.Attributes> 2",
    "ListIPUAttributesReply.Entry.Attributes": "attributes map<str,str> 1",
    "VersionRequest": "",
    "VersionReply": "version str 1",
}

SERVICES = {
    "VersionService": {"GetVersion": ("VersionRequest", "VersionReply")},
    "UserService": {
        name: (f"{name}Request", f"{name}Reply")
        for name in (
            "ListPartitions",
            "ListIPUAttributes",
            "CreatePartition",
            "RemovePartition",
            "ResetPartition",
            "GetPartitionIpuofConfig",
            "GetPartitionStatus",
        )
    },
}


def descriptor(message: str) -> Any:
    assert virmgrpc.Partition  # loads the package
    return wire.pool().FindMessageTypeByName(f"virmgrpc.{message}")


def field_type(field: Any) -> str:
    if field.message_type is not None:
        if field.message_type.GetOptions().map_entry:
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            return _MAP.format(field_type(key), field_type(value))
        name = field.message_type.full_name.removeprefix("virmgrpc.")
    elif field.enum_type is not None:
        name = field.enum_type.full_name.removeprefix("virmgrpc.")
    else:
        name = _SCALARS[field.type]
    return f"[{name}]" if field.is_repeated else name


@pytest.mark.parametrize("message", MESSAGES)
def test_fields_of_a_message(message: str) -> None:
    expected = {tuple(field.split()) for field in re.split(r",\s+", MESSAGES[message]) if field}
    actual = {(field.name, field_type(field), str(field.number)) for field in descriptor(message).fields}
    assert actual == expected


@pytest.mark.parametrize("enum", ENUMS)
def test_values_of_an_enum(enum: str) -> None:
    values = wire.pool().FindEnumTypeByName(f"virmgrpc.{enum}").values
    assert {value.name: value.number for value in values} == ENUMS[enum]


@pytest.mark.parametrize("service", SERVICES)
def test_methods_of_a_service(service: str) -> None:
    methods = virmgrpc.service(service).methods
    assert {method.name: (method.input_type.full_name, method.output_type.full_name) for method in methods} == {
        name: tuple(f"virmgrpc.{part}" for part in parts) for name, parts in SERVICES[service].items()
    }
    assert not any(method.client_streaming or method.server_streaming for method in methods)


def test_the_published_file_contains_only_listed_types() -> None:
    file = descriptor("Partition").file
    assert (file.name, file.package) == ("vipuuser.proto", "virmgrpc")
    assert [each.name for each in file.dependencies] == ["google/protobuf/timestamp.proto"]
    assert set(file.message_types_by_name) == {name for name in MESSAGES if "." not in name}
    assert set(file.enum_types_by_name) == set(ENUMS)
    assert set(file.services_by_name) == set(SERVICES)


def test_bytes_of_a_request() -> None:
    """Compare the bytes of a request with those of another program."""
    request = virmgrpc.CreatePartitionRequest(
        requirements=virmgrpc.PartitionRequirements(id="p", size=4, allocation_id="a", reconfigurable=True),
        relocatable=True,
    )
    assert request.SerializeToString() == b"\x12\x0a\x0a\x01p\x10\x04\x48\x01\x5a\x01a\x28\x01"
