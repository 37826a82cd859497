# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster tests are called, and how they are asked for: for controller, command lines and modules."""

from __future__ import annotations

# Name -> flag of ``test cluster``, in the order in which they run.
FLAGS = {
    "Sync-Link": "--sync",
    "Cabling": "--cabling",
    "IPU-Link": "--ipulink",
    "Traffic": "--traffic",
    "GW-Link": "--gwlink",
    "Version": "--versions",
    "PFC-settings": "--pfc-settings",
}
# All but this one run unless some are chosen.
DEFAULT = tuple(test for test in FLAGS if test != "PFC-settings")
# They take IPUs or links away from whoever works with them; the others only read.
DISTURBING = frozenset(("Sync-Link", "IPU-Link", "Traffic", "GW-Link"))
