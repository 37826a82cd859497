# SPDX-License-Identifier: GPL-3.0-or-later
"""Rehearsal of a POD: translate its files, start its twin, run ``site.yml`` in check mode and for real, report."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from openipu.pod_files import variables
from openipu.pod_files.rehearsal import inventory, playbook
from openipu.pod_files.rehearsal.playbook import Phase, RehearsalError
from openipu.pod_files.rehearsal.progress import Progress
from openipu.pod_files.rehearsal.report import Report, changes
from openipu.pod_files.rehearsal.translation import Translator, choose
from openipu.process import network_namespace
from openipu.process.background import Endpoint, ProcessError, check_free
from openipu.shared.pod import model
from openipu.shared.pod.load import load
from openipu.twin.launch import rack_config
from openipu.twin.launch.errors import TwinError
from openipu.twin.launch.launcher import Twin
from openipu.twin.rack.fault_script import Entry

_FIRST_OCTETS = range(16, 240, 8)


@dataclass(frozen=True)
class Options:
    """Options of a rehearsal."""

    state: Path  # state folder of the twin
    faults: Sequence[Entry] = ()
    keep: bool = False  # whether the twin runs on


def rehearse(pod: model.Pod, options: Options, progress: Progress) -> Report:
    """Rehearse a POD. Raises RehearsalError, TwinError or OSError.

    A failure of the playbook is part of the report. The twin of the same POD that already runs in the state folder is
    used as it is, with its faults. A twin of anything else in the folder is kept, and the rehearsal is rejected.
    Connections of programs that are not Python are counted in a network namespace that has loopback only.
    """
    begun = time.monotonic()
    isolated, unroutable = network_namespace.has_loopback_only(), network_namespace.unroutable()
    twin = Twin(options.state)
    _check_folder(twin, pod)
    running = bool(twin.running())
    violations = twin.pod / "connections.log"
    found = variables.read(Path(pod.file).parent)
    writer: _LockedWriter | None = None
    try:
        translator = _translator(pod, twin, running)
        progress.line(f"Translating the addresses of {pod.file} to 127.{translator.octets[0]}.0.0 and up …")
        environment = playbook.guarded_environment(violations)
        with _environment(environment):
            translated = inventory.TranslatedPod(pod, found, translator)
            writer = _LockedWriter(twin, running, translated, environment, progress)
            with progress.phase("Starting the twin"):
                twin.up(writer, progress.line, [] if running else options.faults)
            if running:
                for fault in options.faults:
                    twin.fault(fault.line)
        runs = []
        source = twin.pod / "pod.yml"
        for check in (True, False):
            with progress.phase("Running site.yml in check mode" if check else "Running site.yml"):
                files = source, twin.pod / inventory.VARIABLES
                run = playbook.run(*files, environment, check, _phase_reporter(progress), progress.part)
            if not run.phases:
                kept = f"Log: {run.log}" if running or options.keep else "To keep the whole log, repeat with --keep."
                raise RehearsalError(f"Cannot run openipu.pod.site: {playbook.last_lines(run.log)} {kept}")
            runs.append(run)
        drawing = twin.pod / inventory.DRAWING
        return Report(
            pod=pod,
            translator=translator,
            check=runs[0],
            site=runs[1],
            variables=writer.translated.variables,
            defects=[each.message for each in twin.defects()],
            connections=violations.read_text().splitlines() if violations.exists() else [],
            other_connections=network_namespace.unroutable() - unroutable if isolated else None,
            drawing=translator.original(drawing.read_text()) if drawing.exists() else None,
            seconds=time.monotonic() - begun,
            drawn_in=str(drawing),
        )
    finally:
        if writer and writer.begun and not options.keep and not running:
            with progress.phase("Stopping the twin"), contextlib.suppress(TwinError):
                twin.down(False, lambda _message: None)


@dataclass
class _LockedWriter:
    """Writer of a rehearsal's files. The launcher calls it while the folder is locked for this rehearsal."""

    twin: Twin
    running: bool  # whether the twin ran before
    translated: inventory.TranslatedPod
    environment: Mapping[str, str]
    progress: Progress
    begun: bool = False  # whether the folder is that of this rehearsal, which may remove it

    def write(self, folder: Path, state: str) -> Path:
        """Write the files, with placeholders of secrets and of other undefined variables.

        Raises OSError, and RehearsalError if another command has changed the folder.
        """
        _check_folder(self.twin, self.translated.pod)
        if bool(self.twin.running()) != self.running:
            raise RehearsalError(f"Cannot use the folder {self.twin.folder}: another command uses it. Try again later.")
        self.begun = True
        path = self.translated.write(folder, state)
        with self.progress.phase("Searching for undefined variables"):
            found = playbook.undefined(path, self.environment)
        more = self.translated.variables.with_undefined(found.examined, found.skipped)
        more = dataclasses.replace(more, lacking=found.lacking)
        self.translated = dataclasses.replace(self.translated, variables=more)
        self.translated.write_extra_variables(folder, state)
        return path


def _check_folder(twin: Twin, pod: model.Pod) -> None:
    """Raise RehearsalError if the folder holds a twin that is no rehearsal of the POD, even a stopped one."""
    identity = twin.identity()
    if identity is None:
        return
    found = inventory.read_origin(twin.pod) if identity.inventory == str(twin.pod / "pod.yml") else None
    if found != inventory.origin(pod):
        owner = found["file"] if found else identity.inventory
        raise RehearsalError(
            f"Cannot rehearse in the folder {twin.folder}: it holds the twin of {owner}. Set another folder with "
            f"--state-dir, or remove this twin and its data with '{twin.command('down')}'."
        )


def _translator(pod: model.Pod, twin: Twin, running: bool) -> Translator:
    """Return a translator whose addresses are free, or that of the running twin. Raises RehearsalError."""
    if running:
        return Translator(pod, _first_octet(twin))
    preferred = _FIRST_OCTETS[zlib.crc32(os.fsencode(twin.folder)) % len(_FIRST_OCTETS)]
    found = choose(pod, preferred, lambda translator: _are_free(pod, translator))
    if found is None:
        raise RehearsalError("Cannot rehearse: all networks of 127.0.0.0/8 are in use. Stop other twins.")
    return found


def _first_octet(twin: Twin) -> int:
    """Return the first octet of the rehearsal that runs in the folder of a twin."""
    octets = {int(host.split(".")[1]) for host in rack_config.hosts(load(str(twin.pod / "pod.yml")))}
    return max(first for first in _FIRST_OCTETS if first <= min(octets))


def _are_free(pod: model.Pod, translator: Translator) -> bool:
    endpoints = [Endpoint(translator.host(pod.controller_host), pod.controller_port)]
    endpoints += [each._replace(host=translator.host(each.host)) for each in rack_config.endpoints(pod)]
    try:
        check_free(endpoints)
    except ProcessError:
        return False
    return True


@contextlib.contextmanager
def _environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Start processes with another environment."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _phase_reporter(progress: Progress) -> Callable[[Phase], None]:
    def report(phase: Phase) -> None:
        state = "FAILED" if phase.failures else changes(len(phase.changes)) if phase.changes else "no changes"
        progress.line(f"  {phase.ended - phase.begun:5.1f} s  {phase.name}: {state}")
        sys.stdout.flush()

    return report
