# SPDX-License-Identifier: GPL-3.0-or-later
"""``make bench``: every speed figure beside its peer, measured in one run.

A benchmark, not a test: it ends with status 0 and says which targets were missed, and by how much.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import click
from tabulate import tabulate

from . import collection, controller
from .lab import Lab
from .measure import Table

PACKAGES = ("ansible-core", "grpcio", "protobuf")


def measure_collection(table: Table, rounds: int) -> None:
    """The collection against one POD, then against 64."""
    with tempfile.TemporaryDirectory() as folder, Lab(pods=64) as lab:
        collection.bench_one_shot(lab, Path(folder), table, rounds)
        collection.bench_growth(lab, Path(folder), table, max(1, rounds - 2))


def measure_controller(table: Table, rounds: int) -> None:
    """The controller on a core of its own."""
    with Lab(pods=64, pinned=True) as lab:
        controller.bench_apply(lab, table, rounds)
        controller.bench_active(lab, table, rounds * 3)
        controller.bench_creates(lab, table, rounds)
    with Lab(pods=157, pinned=True) as lab:
        controller.bench_list(lab, table, rounds * 3)


GROUPS: dict[str, Callable[[Table, int], None]] = {"collection": measure_collection, "controller": measure_controller}


@click.command()
@click.option("--only", type=click.Choice(list(GROUPS)), help="Measure one group.")
@click.option("--rounds", default=5, show_default=True, help="Runs of which the median counts.")
def main(only: str | None, rounds: int) -> None:
    """Measure, and print one table."""
    table = Table("")
    for name in [only] if only else GROUPS:
        click.echo(f"Measuring: {name} …", err=True)
        GROUPS[name](table, rounds)
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    click.echo(f"{os.cpu_count()} cores, Python {platform.python_version()}, {versions}; medians of {rounds} runs")
    rows = [(row.name, row.value, row.peer, row.target, _verdict(row.met)) for row in table.rows]
    click.echo(tabulate(rows, headers=("figure", "measured", "beside", "target", ""), tablefmt="github"))


def _verdict(met: bool | None) -> str:
    return "" if met is None else ("met" if met else "MISSED")


if __name__ == "__main__":
    main()
