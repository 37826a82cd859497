# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Table of the cluster tests, for controller, command lines and modules."""

from __future__ import annotations

import typing as t


class ClusterTest(t.NamedTuple):
    """Properties of a cluster test."""

    number: int  # in the admin API
    flag: str  # of ``test cluster``
    default: bool = True  # runs unless other tests are selected
    disturbs: bool = False  # interrupts partitions; other tests only read


# By name, in the order of execution.
TESTS = {
    "Sync-Link": ClusterTest(1, "--sync", disturbs=True),
    "Cabling": ClusterTest(2, "--cabling"),
    "IPU-Link": ClusterTest(3, "--ipulink", disturbs=True),
    "Traffic": ClusterTest(4, "--traffic", disturbs=True),
    "GW-Link": ClusterTest(5, "--gwlink", disturbs=True),
    "Version": ClusterTest(6, "--versions"),
    "PFC-settings": ClusterTest(7, "--pfc-settings", default=False),
}
FLAGS = {name: test.flag for name, test in TESTS.items()}
DEFAULT = tuple(name for name, test in TESTS.items() if test.default)
DISTURBING = frozenset(name for name, test in TESTS.items() if test.disturbs)
