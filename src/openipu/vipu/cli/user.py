# SPDX-License-Identifier: GPL-3.0-or-later
"""``vipu``: what the users of a POD do."""

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

LEAVES = (
    create_partition,
    get_partition,
    list_partitions,
    reset_partition,
    remove_partition,
    get_allocation,
    list_allocations,
    list_ipu_attrs,
)
vipu = program(
    "vipu",
    "Partitions of an IPU-POD: make, use, remove them.",
    LEAVES,
    ("vipu-admin", frozenset({"agent", "cluster", "allocation", "user", "test", "discover"})),
)


def main() -> None:
    """The command ``vipu``."""
    vipu(prog_name="vipu")


if __name__ == "__main__":
    main()
