# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a partition, each declared once for module options, messages and the command-line transport. No I/O.

The flags of ``vipu create partition`` of openipu, with their help texts, are in ``openipu.vipu.cli.partitions``.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from ..reconcile import Field, Mode
from .names import GW_ROUTING, ROUTING, SYNC_TYPE, Names

Option = dict[str, t.Any]


@dataclass(frozen=True)
class IpuField:
    """One field of an IPU of a partition."""

    name: str
    message: str  # field of virmgrpc.PartitionIpu
    column: str  # of the table that ``vipu get partition`` prints
    option: Option


IPU_FIELDS = (
    IpuField("ild", "ipulink_domain_topology_id", "ild", {"type": "int", "default": 0}),
    IpuField("topology_id", "topology_id", "topology id", {"type": "int", "required": True}),
    IpuField("ild_routing_id", "ipulink_domain_routing_id", "segment", {"type": "int", "default": 0}),
    IpuField("routing_id", "routing_id", "id", {"type": "int", "default": 0}),
)


@dataclass(frozen=True)
class PartitionField:
    """One field of a partition besides its id.

    ``option`` is its argument spec and ``field`` its comparison. ``message`` is its name in
    virmgrpc.PartitionRequirements and PartitionSpec; a field without one belongs to the request around them.
    ``flag`` is the flag of ``vipu create partition`` for the command-line transport; empty: only ``grpc`` sets the
    field. ``columns`` are its names in the output of ``vipu``.
    ``encode`` and ``decode`` convert between the value of an object and that of a message.
    """

    option: Option
    field: Field
    message: str = ""
    flag: str = ""
    columns: tuple[str, ...] = ()
    names: Names | None = None
    encode: t.Callable[[t.Any], t.Any] = bool
    decode: t.Callable[[t.Any], t.Any] = bool

    @property
    def name(self) -> str:
        """Name of the option, and of the field in objects."""
        return self.field.name


def _text(name: str, message: str, flag: str, *columns: str) -> PartitionField:
    field = Field(name, immutable=True)
    return PartitionField({"type": "str"}, field, message, flag, columns, encode=lambda text: text or "", decode=str)


def _count(name: str, message: str, flag: str, *columns: str) -> PartitionField:
    field = Field(name, Mode.SERVER_DEFAULTED, immutable=True)
    return PartitionField({"type": "int"}, field, message, flag, columns, encode=lambda number: number or 0, decode=int)


def _choice(name: str, names: Names, message: str, flag: str, *columns: str) -> PartitionField:
    option = {"type": "str", "choices": names.choices}
    field = Field(name, immutable=True)
    return PartitionField(option, field, message, flag, columns, names, names.number, names.text)


def _switch(name: str, *columns: str, message: str = "", flag: str = "") -> PartitionField:
    return PartitionField({"type": "bool"}, Field(name, immutable=bool(message)), message, flag, columns)


def _same_ipus(ipus: t.Any) -> set[tuple[int, int]]:
    """Return the positions of IPUs. Routing ids are chosen by the controller and not compared."""
    return {(ipu["ild"], ipu["topology_id"]) for ipu in ipus or ()}


def _encode_ipus(ipus: t.Any) -> list[dict[str, int]]:
    return [{field.message: ipu[field.name] for field in IPU_FIELDS} for ipu in ipus or ()]


def _decode_ipus(messages: t.Any) -> list[dict[str, int]]:
    return [{field.name: getattr(message, field.message) for field in IPU_FIELDS} for message in messages]


_GW_ROUTING = _choice("gw_routing", GW_ROUTING, "gw_routing_type", "", "gw routing")

# In the order of the flags of a command line.
PARTITION_FIELDS = (
    _count("size", "size", "--size", "size"),
    _text("allocation", "allocation_id", "--allocation", "allocation", "allocation id"),
    _text("cluster", "cluster_id", "--cluster", "cluster", "cluster id"),
    _count("num_gcds", "num_gcds", "--num-gcds", "gcds"),
    _count("num_replicas", "num_replicas", "--gcd-sync-replicas", "replicas"),
    _count("num_segments", "num_ipulink_segments", "", "ipu-link segments"),
    _choice("routing", ROUTING, "ipulink_routing_type", "--routing", "ild routing", "ipu-link routing"),
    replace(_GW_ROUTING, decode=lambda number: GW_ROUTING.text(number) or None),
    _choice("sync_type", SYNC_TYPE, "sync_type", "--sync-type", "sync type"),
    _switch("reconfigurable", "reconfigurable", message="reconfigurable", flag="--reconfigurable"),
    PartitionField(
        {
            "type": "list",
            "elements": "dict",
            "options": {field.name: field.option for field in IPU_FIELDS},
        },
        Field("ipus", Mode.SERVER_DEFAULTED, immutable=True, view=_same_ipus),
        "ipus",
        encode=_encode_ipus,
        decode=_decode_ipus,
    ),
    # The public API accepts these two on creation and never reports them; only our controller reports and changes them.
    _switch("disable_auto_reset", "auto reset disabled"),
    _switch("relocatable", "relocatable"),
)
