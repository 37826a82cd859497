# SPDX-License-Identifier: GPL-3.0-or-later
"""Text output of cluster tests. No I/O.

Graphcore's administrator guide prints the results of different tests in different layouts. Each of its blocks has its
layout here. Tests without a block have the layout of the sync test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from openipu.vipu.cli import output

_FAILED = output.subject("test", "cluster", None)


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of the results of one command."""

    title: bool = True  # a line with the id of the cluster
    header: str = "Test Type"
    header_indent: int = 2
    indent: int = 2  # of the rows
    width: int = 11  # of the first column
    failed_subject: str = _FAILED  # of the last line when a test failed; empty for no such line


_TESTS: Mapping[str, Layout] = {
    "Cabling": Layout(header_indent=1, indent=1, failed_subject=""),
    "PFC-settings": Layout(header_indent=1, indent=1, width=12, failed_subject=""),
}
_SEVERAL = Layout(width=12)
_DEPENDENCY_FAILED = Layout(title=False, header_indent=0, indent=1, failed_subject="")


def layout(run: Mapping[str, Any]) -> Layout:
    """Return the layout of a finished run that the command started."""
    requested = run["requested"]
    if len(requested) > 1:
        skipped = any(result["skipped_because"] for result in run["results"])
        return _DEPENDENCY_FAILED if skipped else _SEVERAL
    if requested == ["Traffic"] and not run["ok"]:
        return Layout(title=False, header="Test", failed_subject=output.subject("test", "cluster", run["cluster"]))
    return _TESTS.get(requested[0], Layout()) if requested else Layout()


def status_layout(run: Mapping[str, Any]) -> Layout:
    """Return the layout of the results of an earlier command: always with the cluster and a last line."""
    return replace(layout(run), title=True, failed_subject=output.subject("test", "cluster", "status"))


def results(run: Mapping[str, Any], form: Layout) -> str:
    """Return the table of a run."""
    cells = [(form.header, "Duration", "Passed", "Summary")]
    for result in run["results"]:
        first, *more = map(output.printable, result["summary"] or [""])
        cells.append((result["test"], f"{result['duration']:.2f}s", f"{result['passed']}/{result['total']}", first))
        cells += [("", "", "", line) for line in more]
    widths = [max(form.width if n == 0 else 0, *(len(row[n]) for row in cells)) for n in range(3)]
    lines = [
        " | ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])).rstrip()
        for row in cells
    ]
    indented = [" " * (form.indent if n else form.header_indent) + line for n, line in enumerate(lines)]
    title = [f"Showing test results for cluster {run['cluster']}"] if form.title else []
    return "\n".join([*title, *indented])
