# SPDX-License-Identifier: GPL-3.0-or-later
"""Work of the command ``openipu-pod rehearse``."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from openipu.pod_files import files, warnings
from openipu.pod_files.rehearsal.fault_names import parsed
from openipu.pod_files.rehearsal.playbook import RehearsalError
from openipu.pod_files.rehearsal.progress import Progress
from openipu.pod_files.rehearsal.rehearse import Options, rehearse
from openipu.pod_files.rehearsal.report import DRAWING, Report
from openipu.process import network_namespace
from openipu.process.failures import ProgramError, program_error
from openipu.process.signals import one_interrupt, sigterm_exits
from openipu.twin.launch import hints, relay
from openipu.twin.launch.errors import TwinError
from openipu.twin.launch.launcher import Twin
from openipu.twin.rack.fault_lines import FaultError
from openipu.twin.rack.fault_script import Entry

_QUIET_SECONDS = 5.0  # between signs of life on a terminal
_INTERRUPTED = 130  # exit status, as shells report it
_NETWORK = Path("/proc/self/ns/net")


def run(path: Path, state: Path, faults: Sequence[str], keep: bool, output: str) -> int:
    """Rehearse the POD of a file and print the report; return the exit status. Raises ProgramError."""
    pod, mistakes = files.read(path)
    if pod is None:
        found = warnings.of_variables(path.parent)
        lines = "\n".join((*(each.text for each in mistakes), *(each.warning for each in found)))
        raise ProgramError(f"Cannot rehearse {path}: it is invalid.\n{lines}", files.PodFilesError.error_code)
    twin = Twin(state)
    progress = Progress(lambda text: click.echo(text, err=True), _QUIET_SECONDS if sys.stderr.isatty() else None)
    try:
        entries = [Entry("--fault", line) for line in parsed(faults, pod)]
        with sigterm_exits(), one_interrupt(), own_network(twin, keep), progress.signs_of_life():
            report = rehearse(pod, Options(state, entries, keep), progress)
    except KeyboardInterrupt:
        click.echo(_interrupted(progress.phase_text, twin), err=True)
        return _INTERRUPTED
    except (RehearsalError, TwinError, FaultError, OSError) as error:
        raise program_error(error) from None
    show(report, path.parent / DRAWING, output)
    if keep and output != "json":
        folder = state.absolute()
        fault = hints.command(folder, "fault", "unplug", f"{pod.machines[0].name}:5")
        click.echo(f"The twin is running.\nBreak it:  {fault}\nStop it:   {hints.command(folder, 'down')}")
    sys.stdout.flush()
    return 0 if report.succeeded else 1


def _interrupted(phase: str, twin: Twin) -> str:
    """Return the message after an interrupt. ``phase`` is empty before the start of the twin."""
    if twin.running():
        end = f"the twin is running. Stop it: {hints.command(twin.folder, 'down')}"
    else:
        end = "the twin was stopped." if phase else "no twin was started."
    return f"Interrupted during '{phase}'; {end}" if phase else f"Interrupted; {end}"


@contextlib.contextmanager
def own_network(twin: Twin, keep: bool) -> Iterator[None]:
    """Move this process into a network of its own, that of the twin if it runs, where the host allows that.

    A relay makes a twin that runs on reachable from outside.
    """
    process = twin.process()
    starter = relay.Starter() if process or keep else None
    try:
        outside = _NETWORK.stat().st_ino
        if process:
            network_namespace.join(process)
        else:
            network_namespace.enter()
        try:
            yield
        finally:
            process = twin.process()
            moved = _NETWORK.stat().st_ino != outside
            if starter and process and moved and (error := starter.start(twin.folder, process, twin.endpoints())):
                click.echo(f"Warning: the twin cannot be reached from outside of its network: {error}", err=True)
    finally:
        if starter:
            starter.cancel()


def show(report: Report, drawing: Path, output: str) -> None:
    """Print a report, then write its picture of the racks. A picture that cannot be written is a warning."""
    click.echo(json.dumps(report.as_json(), indent=2) if output == "json" else report.text())
    if not report.drawing:
        return
    try:
        drawing.write_text(report.drawing)
    except OSError as error:
        click.echo(f"Warning: cannot write the rack report {drawing}: {error.strerror}.", err=True)
        return
    if output != "json":
        click.echo(f"Rack report: {drawing}")
