# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cables and links of a cluster. Pure arithmetic, for the cluster tests, the twin and the report alike.

A machine is named by its position in the cluster: domain by domain, the lowest in the rack first.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

IPUS_PER_MACHINE = 4
MESH, TORUS = "mesh", "torus"  # how the IPU-Links of one IPU-Link domain are cabled

# Chassis ports of an IPU-Machine that lead to the machine below and to the one above.
IPU_LINK_DOWN = (1, 2, 3, 4)
IPU_LINK_UP = (5, 6, 7, 8)
SYNC_LINK_DOWN = (2, 3)
SYNC_LINK_UP = (6, 7)
GW_LINK_NEXT = 1  # to the same position in the next IPU-Link domain
GW_LINK_PREVIOUS = 2

INTERNAL_LINKS = 16  # IPU-Links inside of one IPU-Machine that the IPU-Link test counts

TRAFFIC_WINDOW = 4  # machines (16 IPUs) of one traffic test
TRAFFIC_STEP = 2  # machines between the starts of two overlapping traffic tests


class CableKind(enum.StrEnum):
    """The families of chassis ports, each numbered on its own."""

    IPU_LINK = "IPU-Link"
    GW_LINK = "GW-Link"
    SYNC_LINK = "Sync-Link"


class Port(NamedTuple):
    """One chassis port of one machine."""

    position: int  # of the machine in the cluster
    port: int  # as printed on the chassis


class Cable(NamedTuple):
    """A cable and the ports at both of its ends; ``a`` is the lower machine, or the one in the earlier domain."""

    kind: CableKind
    a: Port
    b: Port


@dataclass(frozen=True, slots=True)
class Layout:
    """How many machines, and how they are cabled. Any number of either from one up."""

    machines_per_ild: int
    ilds: int = 1
    topology: str = MESH

    @classmethod
    def of(cls, cluster: Any) -> Layout:
        """The layout of a cluster record."""
        return cls(cluster.machines_per_ild, cluster.num_ilds, cluster.topology)

    @property
    def ipus(self) -> int:
        """All IPUs."""
        return IPUS_PER_MACHINE * self.machines_per_ild * self.ilds

    def ipu_link_cables(self, ild: int) -> Iterator[Cable]:
        """Mesh: 4 (n - 1) cables, each machine to the one above. Torus: 4 n, the top one to the bottom one too.

        A torus of one machine loops its own ports.
        """
        first, n = ild * self.machines_per_ild, self.machines_per_ild
        for machine in range(n if self.topology == TORUS else n - 1):
            for up, down in zip(IPU_LINK_UP, IPU_LINK_DOWN, strict=True):
                yield Cable(CableKind.IPU_LINK, Port(first + machine, up), Port(first + (machine + 1) % n, down))

    def sync_link_cables(self, ild: int) -> Iterator[Cable]:
        """2 (n - 1) cables: never closed to a ring."""
        first = ild * self.machines_per_ild
        for machine in range(first, first + self.machines_per_ild - 1):
            for up, down in zip(SYNC_LINK_UP, SYNC_LINK_DOWN, strict=True):
                yield Cable(CableKind.SYNC_LINK, Port(machine, up), Port(machine + 1, down))

    def gw_link_cables(self) -> Iterator[Cable]:
        """D × n cables from two domains up, looped: from each machine to its like in the next domain."""
        if self.ilds == 1:
            return
        total = self.machines_per_ild * self.ilds
        for position in range(total):
            there = (position + self.machines_per_ild) % total
            yield Cable(CableKind.GW_LINK, Port(position, GW_LINK_NEXT), Port(there, GW_LINK_PREVIOUS))

    def cables(self) -> Iterator[Cable]:
        """Every cable of the cluster: IPU-Links and Sync-Links domain by domain, then GW-Links."""
        for ild in range(self.ilds):
            yield from self.ipu_link_cables(ild)
            yield from self.sync_link_cables(ild)
        yield from self.gw_link_cables()

    def tested_cables(self) -> Iterator[Cable]:
        """What the cabling test reads: the cables with serial ids, IPU-Links and GW-Links."""
        return (cable for cable in self.cables() if cable.kind is not CableKind.SYNC_LINK)

    def ipu_links(self) -> int:
        """Links that the IPU-Link test trains: those inside of each machine, and the cabled ones."""
        per_ild = len(list(self.ipu_link_cables(0)))
        return self.ilds * (INTERNAL_LINKS * self.machines_per_ild + per_ild)

    def traffic_windows(self) -> Iterator[tuple[int, ...]]:
        """The machines of each traffic test: overlapping windows of four, over the top of a torus too.

        A domain of up to four machines is one window. In a mesh with an odd number of machines the
        last window moves down by one so that it ends at the top machine.
        """
        n = self.machines_per_ild
        for first in range(0, n * self.ilds, n):
            if n <= TRAFFIC_WINDOW:
                yield tuple(range(first, first + n))
                continue
            if self.topology == TORUS:
                starts = list(range(0, n, TRAFFIC_STEP))
            else:
                last = n - TRAFFIC_WINDOW
                starts = [*range(0, last, TRAFFIC_STEP), last]
            for start in starts:
                yield tuple(first + (start + machine) % n for machine in range(TRAFFIC_WINDOW))
