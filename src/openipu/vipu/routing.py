# SPDX-License-Identifier: GPL-3.0-or-later
"""The routing of a partition when none is asked for. Pure."""

from __future__ import annotations

from openipu.vipu.model import GwRouting, Routing, Topology

DNC_MOST_IPUS = 16  # larger partitions are switched


def routing_for(size: int, topology: Topology, whole_ild: bool) -> Routing:
    """The IPU-Link routing when none is asked for.

    DNC up to 16 IPUs; above that RINGSWNC when the partition takes whole torus domains, else SWNC.
    """
    if size <= DNC_MOST_IPUS:
        return Routing.DNC
    return Routing.RINGSWNC if ring_possible(topology, whole_ild) else Routing.SWNC


def ring_possible(topology: Topology, whole_ild: bool) -> bool:
    """Whether the IPU-Links of a partition close to a ring: only a whole torus domain does."""
    return whole_ild and topology is Topology.TORUS


def gw_routing_for(segments: int) -> GwRouting:
    """The GW-Link routing when none is asked for: a ring between domains, none inside of one."""
    return GwRouting.RING if segments > 1 else GwRouting.UNDEFINED
