# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line ``vipu``: the commands for users of a POD."""

from __future__ import annotations

from openipu.vipu.cli.agents import list_ipu_attrs
from openipu.vipu.cli.allocations import get_allocation, list_allocations
from openipu.vipu.cli.grammar import program
from openipu.vipu.cli.partitions import (
    create_partition,
    get_partition,
    list_partitions,
    remove_partition,
    reset_partition,
)
from openipu.vipu.cli.watch import watch_allocations, watch_partitions

LEAVES = (
    create_partition,
    get_partition,
    list_partitions,
    reset_partition,
    remove_partition,
    get_allocation,
    list_allocations,
    list_ipu_attrs,
    watch_allocations,
    watch_partitions,
)
vipu = program(
    "vipu",
    "Manage partitions of an IPU-POD.",
    LEAVES,
    (
        "vipu-admin",
        frozenset(
            {
                "agent",
                "cluster",
                "allocation",
                "user",
                "certificate",
                "test",
                "discover",
                "take-over",
                "quarantine",
                "release",
                "drain",
                "update",
            }
        ),
    ),
)


def main() -> None:
    """Run ``vipu``."""
    vipu(prog_name="vipu")


if __name__ == "__main__":
    main()
