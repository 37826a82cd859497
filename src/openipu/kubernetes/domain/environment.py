# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment variables with which Poplar and PopDist find the IPUs of a worker, and its share of the model."""

from __future__ import annotations

import json
from dataclasses import dataclass

from openipu.kubernetes.domain.job import Shape

# IPU-Link routing -> configuration and topology of the IPU-Links, as poprun derives them from a partition.
_LINKS = {
    "DNC": ("default", "mesh"),
    "SWNC": ("slidingWindow", "mesh"),
    "BTNC": ("barleyTwist", "mesh"),
    "RINGSWNC": ("slidingWindow", "torus"),
}


@dataclass(frozen=True, slots=True)
class Partition:
    """A reserved partition. ``host`` and ``port``: the user API of its V-IPU controller, for pods.

    ``routing``: of its IPU-Links, such as DNC; empty if it is unknown.
    """

    id: str
    host: str
    port: int
    node_label: tuple[str, str] | None = None  # of the nodes that reach its IPUs
    timeout: int = 60  # seconds for calls of Poplar
    routing: str = ""


def worker(shape: Shape, partition: Partition, index: int) -> dict[str, str]:
    """Return the variables of a worker. ``index``: its number in the instance, from 0, and its GCD."""
    return {
        "IPUOF_VIPU_API_HOST": partition.host,
        "IPUOF_VIPU_API_PORT": str(partition.port),
        "IPUOF_VIPU_API_PARTITION_ID": partition.id,
        "IPUOF_VIPU_API_TIMEOUT": str(partition.timeout),
        "IPUOF_VIPU_API_GCD_ID": str(index),
        "POPDIST_NUM_TOTAL_REPLICAS": str(shape.replicas),
        "POPDIST_NUM_IPUS_PER_REPLICA": str(shape.ipus_per_replica),
        "POPDIST_NUM_LOCAL_REPLICAS": str(shape.replicas_per_worker),
        "POPDIST_UNIFORM_REPLICAS_PER_INSTANCE": "1",
        "POPDIST_REPLICA_INDEX_OFFSET": str(index * shape.replicas_per_worker),
        "POPDIST_LOCAL_INSTANCE_INDEX": "0",  # each pod has one
        **_target_options(shape, partition.routing),
    }


def _target_options(shape: Shape, routing: str) -> dict[str, str]:
    """Return the options of Poplar's target, without which programs are compiled for other IPU-Links."""
    links = _LINKS.get(routing)
    if links is None:
        return {}
    configuration, topology = links
    options = {
        "ipuLinkDomainSize": str(shape.ipus),
        "ipuLinkConfiguration": configuration,
        "ipuLinkTopology": topology,
        "gatewayMode": "true",
        "instanceSize": str(shape.ipus_per_worker),
    }
    return {"POPLAR_TARGET_OPTIONS": json.dumps(options, separators=(",", ":"))}
