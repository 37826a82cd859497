# SPDX-License-Identifier: GPL-3.0-or-later
"""Benchmarks, each with the figure of a peer from the same run: ``python -m tests.benchmark``."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from importlib import metadata

import click

from . import cluster_tests, collection, controller, fleet, inventory, racks, rehearsal, report, switches
from .lab import Lab
from .measure import Table
from .switch_lab import SwitchLab


def _one_shot(table: Table, rounds: int) -> None:
    with Lab(1) as lab:
        collection.bench_one_shot(lab, lab.folder, table, rounds)


def _growth(table: Table, rounds: int) -> None:
    with Lab(64) as lab:
        collection.bench_growth(lab, lab.folder, table, rounds)


def _creates(table: Table, rounds: int) -> None:
    with Lab(64, one_core=True) as lab:
        controller.bench_creates(lab, table, min(rounds, 3))


def _list(table: Table, rounds: int) -> None:
    with Lab(160) as lab:
        controller.bench_list(lab, table, rounds)


def _apply(table: Table, rounds: int) -> None:
    with Lab(64) as lab:
        controller.bench_apply(lab, table, rounds)


def _active(table: Table, rounds: int) -> None:
    with Lab(1) as lab:
        controller.bench_active(lab, table, rounds)


def _cluster_tests(table: Table, rounds: int) -> None:
    with Lab(1) as lab:
        cluster_tests.bench_one_rack(lab, table, rounds)
    with Lab(64) as lab:
        cluster_tests.bench_many_racks(lab, table, rounds)


def _switches(table: Table, rounds: int) -> None:
    with SwitchLab() as lab:
        switches.bench_pod(lab, table, rounds)
        switches.bench_pdu(lab, table, rounds)


def _many_switches(table: Table, rounds: int) -> None:
    with SwitchLab(32) as lab:
        switches.bench_many(lab, table, min(rounds, 3))


_GROUPS: dict[str, Callable[[Table, int], None]] = {
    "one-shot": _one_shot,
    "growth": _growth,
    "creates": _creates,
    "list": _list,
    "apply": _apply,
    "active": _active,
    "fleet": fleet.bench_fleet,
    "cluster-tests": _cluster_tests,
    "report": report.bench_report,
    "inventory": inventory.bench_inventory,
    "switches": _switches,
    "many-switches": _many_switches,
    "racks": racks.bench_racks,
    "rehearsal": lambda table, rounds: rehearsal.bench_rehearsal(table, min(rounds, 3)),
}


def _machine() -> str:
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in ("ansible-core", "grpcio", "pyeapi", "pysnmp"))
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return f"{cores} cores (load {load:.1f} at start), Python {platform.python_version()}, {libraries}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--only",
    "names",
    multiple=True,
    type=click.Choice(list(_GROUPS)),
    help="Group of figures to measure; repeatable. Default: all.",
)
@click.option(
    "--rounds", default=5, show_default=True, type=click.IntRange(1), help="Number of runs; figures are medians."
)
def main(names: tuple[str, ...], rounds: int) -> None:
    """Measure and print a table of figures. Missed targets are reported, and the exit status is 0."""
    table = Table(f"openipu.pod, {_machine()}: medians of {rounds} alternating runs")
    for name in names or _GROUPS:
        start = time.monotonic()
        print(f"{name} …", end="", file=sys.stderr, flush=True)
        try:
            _GROUPS[name](table, rounds)
        except RuntimeError as error:
            raise click.ClickException(f"{name}: {error}") from None
        print(f" {time.monotonic() - start:.0f} s", file=sys.stderr)
    print(table.text())
    missed = "; ".join(table.missed)
    print(f"\nMissed targets: {missed}." if missed else "\nAll targets are met.")


if __name__ == "__main__":
    main(prog_name="python -m tests.benchmark")
