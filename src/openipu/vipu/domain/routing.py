# SPDX-License-Identifier: GPL-3.0-or-later
"""Default routing of a partition. No I/O."""

from __future__ import annotations

from openipu.vipu.domain.model import GwRouting, Routing, Topology

MAX_DNC_IPUS = 16  # larger partitions are switched


def routing_for(size: int, topology: Topology, whole_ild: bool) -> Routing:
    """Return the default IPU-Link routing.

    DNC up to 16 IPUs; above that RINGSWNC when the partition takes whole torus domains, else SWNC.
    """
    if size <= MAX_DNC_IPUS:
        return Routing.DNC
    return Routing.RINGSWNC if ring_possible(topology, whole_ild) else Routing.SWNC


def ring_possible(topology: Topology, whole_ild: bool) -> bool:
    """Return whether the IPU-Links of a partition form a ring: only those of a whole torus domain do."""
    return whole_ild and topology is Topology.TORUS


def gw_routing_for(segments: int) -> GwRouting:
    """Return the default GW-Link routing: a ring between domains, none inside one domain."""
    return GwRouting.RING if segments > 1 else GwRouting.UNDEFINED
