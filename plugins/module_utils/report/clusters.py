# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of a report. No I/O."""

from __future__ import annotations

import typing as t

from ..pod.topology import Layout


class Cluster(t.NamedTuple):
    """A cluster with its agents in cabling order."""

    id: str
    agents: tuple[str, ...]
    num_ilds: int
    topology: str

    @property
    def layout(self) -> Layout:
        """Layout of the cabling."""
        return Layout(len(self.agents) // self.num_ilds, self.num_ilds, self.topology)
