# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cables and links of a cluster, for the cluster tests, the twin and the report. No I/O.

A machine is identified by its position in the cluster: domain by domain, from the lowest in the rack up.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..vipu.object_rules import IPUS_PER_MACHINE

MESH, TORUS = "mesh", "torus"  # cabling of the IPU-Links in one IPU-Link domain

# Chassis ports of an IPU-Machine that lead to the machine below and to the one above.
IPU_LINK_DOWN = (1, 2, 3, 4)
IPU_LINK_UP = (5, 6, 7, 8)
SYNC_LINK_DOWN = (2, 3)
SYNC_LINK_UP = (6, 7)
GW_LINK_NEXT = 1  # to the same position in the next IPU-Link domain
GW_LINK_PREVIOUS = 2

INTERNAL_LINKS = 16  # IPU-Links inside an IPU-Machine in the count of the IPU-Link test

TRAFFIC_WINDOW = 4  # machines (16 IPUs) of one traffic test
TRAFFIC_STEP = 2  # machines between the starts of two overlapping traffic tests


class CableKind(enum.StrEnum):
    """Kind of chassis port and cable. Ports are numbered per kind."""

    IPU_LINK = "IPU-Link"
    GW_LINK = "GW-Link"
    SYNC_LINK = "Sync-Link"


class Port(NamedTuple):
    """One chassis port of one machine."""

    position: int  # of the machine in the cluster
    port: int  # as printed on the chassis


class Cable(NamedTuple):
    """A cable with the ports at both ends. ``a`` is the lower machine, or the machine in the earlier domain."""

    kind: CableKind
    a: Port
    b: Port


@dataclass(frozen=True, slots=True)
class Layout:
    """Number of machines and domains of a cluster, each at least one, and their cabling."""

    machines_per_ild: int
    ilds: int = 1
    topology: str = MESH

    @classmethod
    def of(cls, cluster: Any) -> Layout:
        """Return the layout of a cluster record."""
        return cls(cluster.machines_per_ild, cluster.num_ilds, cluster.topology)

    @property
    def ipus(self) -> int:
        """Number of IPUs."""
        return IPUS_PER_MACHINE * self.machines_per_ild * self.ilds

    def ipu_link_cables(self, ild: int) -> Iterator[Cable]:
        """Yield the IPU-Link cables of a domain with n machines.

        A mesh has 4 (n - 1) cables, from each machine to the next. A torus has 4 n, including those from the top to
        the bottom machine. A torus of one machine connects its own ports.
        """
        first, n = ild * self.machines_per_ild, self.machines_per_ild
        for machine in range(n if self.topology == TORUS else n - 1):
            for up, down in zip(IPU_LINK_UP, IPU_LINK_DOWN, strict=True):
                yield Cable(CableKind.IPU_LINK, Port(first + machine, up), Port(first + (machine + 1) % n, down))

    def sync_link_cables(self, ild: int) -> Iterator[Cable]:
        """Yield the 2 (n - 1) Sync-Link cables of a domain; they never form a ring."""
        first = ild * self.machines_per_ild
        for machine in range(first, first + self.machines_per_ild - 1):
            for up, down in zip(SYNC_LINK_UP, SYNC_LINK_DOWN, strict=True):
                yield Cable(CableKind.SYNC_LINK, Port(machine, up), Port(machine + 1, down))

    def gw_link_cables(self) -> Iterator[Cable]:
        """Yield the GW-Link cables from each machine to the same position in the next domain, as a loop.

        A single domain has none.
        """
        if self.ilds == 1:
            return
        total = self.machines_per_ild * self.ilds
        for position in range(total):
            following = (position + self.machines_per_ild) % total
            yield Cable(CableKind.GW_LINK, Port(position, GW_LINK_NEXT), Port(following, GW_LINK_PREVIOUS))

    def cables(self) -> Iterator[Cable]:
        """Yield all cables: IPU-Links and Sync-Links domain by domain, then GW-Links."""
        for ild in range(self.ilds):
            yield from self.ipu_link_cables(ild)
            yield from self.sync_link_cables(ild)
        yield from self.gw_link_cables()

    def tested_cables(self) -> Iterator[Cable]:
        """Yield the cables of the cabling test: IPU-Links and GW-Links, which have serial numbers."""
        return (cable for cable in self.cables() if cable.kind is not CableKind.SYNC_LINK)

    def ipu_links(self) -> int:
        """Return the number of links in the IPU-Link test: internal links and cables."""
        per_ild = len(list(self.ipu_link_cables(0)))
        return self.ilds * (INTERNAL_LINKS * self.machines_per_ild + per_ild)

    def traffic_windows(self) -> Iterator[tuple[int, ...]]:
        """Yield the machines of each traffic test: overlapping windows of four, which wrap around a torus.

        A domain of up to four machines is one window. In a mesh with an odd number of machines, the last window
        starts one machine lower so that it ends at the top machine.
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
