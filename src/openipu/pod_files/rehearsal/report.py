# SPDX-License-Identifier: GPL-3.0-or-later
"""Report of a rehearsal, with the names and addresses of the user. No I/O."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openipu.pod_files import files
from openipu.pod_files.rehearsal.inventory import LEFT_OUT, unsupported
from openipu.pod_files.rehearsal.playbook import Run
from openipu.pod_files.rehearsal.translation import Translator
from openipu.pod_files.variables import Variables
from openipu.shared.pod import model
from openipu.shared.pod.source import read_yaml

DRAWING = "rehearsal-rack-report.html"  # file beside pod.yml that keeps the drawing
_DRAWING = "openipu.pod.pod_report"  # action that writes a file of this rehearsal only
_TEST = "openipu.pod.vipu_cluster_test"
_ALL_COUNTED = "counted: all programs; their network had loopback only"
_PYTHON_COUNTED = "counted: Python code, without gRPC and other programs, because the network was not isolated"
_SHOWN_LINES = 12  # of a difference, in text


@dataclass(frozen=True)
class Change:
    """Change of one task on one host, with the lines of its difference."""

    phase: str
    host: str
    address: str
    task: str
    lines: tuple[str, ...]
    skipped: bool  # whether the real run skips the device, because its credentials are missing
    note: str = ""  # for a task without a difference


@dataclass(frozen=True)
class Report:
    """Results of a rehearsal.

    ``connections`` are the rejected connections of Python code that would have left loopback. ``other_connections`` is
    the number of those of gRPC and other programs; None if the network of the rehearsal was not isolated.
    """

    pod: model.Pod
    translator: Translator
    check: Run
    site: Run
    variables: Variables
    defects: Sequence[str]
    connections: Sequence[str]
    drawing: str | None
    seconds: float
    other_connections: int | None = None
    drawn_in: str = ""  # path of the drawing of the run, which is removed with the twin

    @property
    def succeeded(self) -> bool:
        """True if both runs succeeded and nothing left loopback."""
        return self._runs_succeeded and not self._connection_count

    @property
    def _runs_succeeded(self) -> bool:
        return self.check.succeeded and self.site.succeeded

    @property
    def _connection_count(self) -> int:
        return len(self.connections) + (self.other_connections or 0)

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "pod": self.pod.name,
            "file": self.pod.file,
            "succeeded": self.succeeded,
            "seconds": round(self.seconds, 1),
            "phases": [
                {"name": phase.name, "check": counts(self.check, phase.name), "site": counts(self.site, phase.name)}
                for phase in self.site.phases
            ],
            "failures": self.failures(),
            "warnings": self.warnings(),
            "changes": [vars(change) for change in self.changes()],
            "messages": self.messages(),
            "defects": [self._named(each) for each in self.defects],
            "not_rehearsed": self.not_rehearsed(),
            "undefined_variables": dict(self.variables.undefined),
            "unknown_variables": [
                {"file": each.file, "line": each.line, "message": each.message} for each in self.variables.mistyped()
            ],
            "connections_outside_loopback": list(self.connections),
            "connections_of_other_programs": self.other_connections,
        }

    def failures(self) -> list[dict[str, Any]]:
        """Return the failed tasks with the runs in which they failed."""
        found: dict[tuple[str, str, str], list[str]] = {}
        for run in (self.check, self.site):
            for phase in run.phases:
                for each in phase.failures:
                    place = (phase.name, each["host"], self._named(self._own(each["msg"])))
                    found.setdefault(place, []).append("check" if run.check else "site")
        return [
            {"runs": runs, "phase": phase, "host": host, "message": message}
            for (phase, host, message), runs in found.items()
        ]

    def warnings(self) -> list[dict[str, Any]]:
        """Return the warnings of the real run; those about cables have ``device``, ``connector`` and ``port``."""
        return [
            {"phase": phase.name, **warning, "message": self._named(self._own(warning["message"]))}
            for phase in self.site.phases
            for warning in phase.warnings
        ]

    def changes(self) -> list[Change]:
        """Return the changes of the real run: those that the real POD will see, unless they are ``skipped``."""
        addresses = {device.name: device.addresses.get(device.reached_by, "") for device in self.pod.devices}
        skipped = {name for names in self.variables.lacking.values() for name in names}
        return [
            Change(
                phase.name,
                each["host"],
                addresses.get(each["host"], ""),
                each["task"],
                tuple(self._lines(each["diff"])),
                each["host"] in skipped,
                "runs on the machines, and configures nothing" if each["action"] == _TEST else "",
            )
            for phase in self.site.phases
            for each in self._in_order(phase.changes)
            if each["action"] != _DRAWING
        ]

    def _in_order(self, results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the results of a phase by task, and then by rack, unit and name, because hosts finish in any order."""
        tasks = {task: number for number, task in enumerate(dict.fromkeys(each["task"] for each in results))}
        racks = {rack.name: number for number, rack in enumerate(self.pod.racks)}
        places = {
            device.name: (racks[device.rack], getattr(device, "unit", 0), device.name) for device in self.pod.devices
        }
        last = len(racks), 0, ""
        return sorted(results, key=lambda each: (tasks[each["task"]], places.get(each["host"], last)))

    def messages(self) -> list[dict[str, Any]]:
        """Return what the tasks of the real run print."""
        return [
            {"phase": phase.name, "host": each["host"], "message": json.loads(self._own(json.dumps(each["msg"])))}
            for phase in self.site.phases
            for each in phase.results
            if each["action"] == "ansible.builtin.debug" and each["kind"] == "ok" and each["msg"]
        ]

    def not_rehearsed(self) -> list[str]:
        """Return the parts of the real run that the twin does not show."""
        top = read_yaml(self.pod.file)
        found = [f"{title} (key '{key}' of pod.yml)" for key, title in LEFT_OUT.items() if top.get(key) is not None]
        found += [
            f"{name}: the twin does not support the model {product}" for name, product in unsupported(self.pod).items()
        ]
        found += [f"variables in {path}, which is encrypted" for path in self.variables.encrypted]
        devices = [each for rack in self.pod.racks for each in (*rack.switches, *rack.pdus, *rack.servers)]
        if unmanaged := [device.name for device in devices if not getattr(device, "managed", True)]:
            found.append(f"unmanaged: {', '.join(unmanaged)}")
        found += [
            f"credentials: without {variable}, the real run skips {', '.join(names)}"
            for variable, names in self.variables.lacking.items()
        ]
        return found

    def text(self) -> str:
        """Return the report as text."""
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        verdict = f"site.yml {'succeeds' if self._runs_succeeded else 'FAILS'}"
        if self._runs_succeeded and not self.succeeded:
            connections = files.count(self._connection_count, "connection")
            verdict += f", but the rehearsal FAILS: {connections} outside loopback"
        yield f"Rehearsal of {self.pod.name} ({files.contents(self.pod)}): {verdict}{self._with_warnings()}."
        yield ""
        yield f"{'Phase':56} {'dry run':>12} {'run':>12}"
        for phase in self.site.phases if len(self.site.phases) >= len(self.check.phases) else self.check.phases:
            yield f"{phase.name[:56]:56} {_state(self.check, phase.name):>12} {_state(self.site, phase.name):>12}"
        if failures := self.failures():
            yield "\nFailures"
            for each in failures:
                yield f"  {each['phase']}, {each['host']}: {each['message']}"
        if warnings := self.warnings():
            yield "\nWarnings"
            yield from (f"  {each['phase']}, {each['host']}: {each['message']}" for each in warnings)
        yield f"\nChanges on the real POD{'' if self._runs_succeeded else ' until the failure'}"
        changes = self.changes()
        if not changes:
            yield "  none"
        for change in changes:
            place = f"{change.host} ({change.address})" if change.address else change.host
            if change.skipped:
                yield f"  {place}: none, because its credentials are missing (twin only: {change.task})"
                continue
            yield f"  {place}: {change.task}" + (f" ({change.note})" if change.note else "")
            yield from (f"      {line}" for line in change.lines[:_SHOWN_LINES])
            if len(change.lines) > _SHOWN_LINES:
                yield f"      … and {len(change.lines) - _SHOWN_LINES} more lines (all: -o json)"
        if self.defects:
            yield "\nFaults of the twin during the rehearsal"
            yield from (f"  {self._named(each)}" for each in self.defects)
        if undefined := self.variables.undefined:
            yield "\nUndefined variables, such as secrets (ansible-vault create vault.yml)"
            for name, place in undefined.items():
                near = self.variables.similar(name)
                yield f"  {name} (used in {place})" + (f": did you mean '{near}'?" if near else "")
        if mistyped := list(self.variables.mistyped()):
            yield "\nUnknown variables, which no playbook of the collection uses"
            yield from (f"  {each.file}:{each.line}: {each.message}" for each in mistyped)
        if parts := self.not_rehearsed():
            yield "\nNot rehearsed"
            yield from (f"  {part}" for part in parts)
        others = self.other_connections
        counted = _PYTHON_COUNTED if others is None else _ALL_COUNTED
        yield f"\nConnections outside loopback: {self._connection_count} ({counted})."
        yield from (f"  {line}" for line in self.connections)
        if others:
            yield f"  rejected attempts of gRPC and of programs that are not Python: {others}"
        yield f"Duration: {self.seconds:.0f} s."

    def _with_warnings(self) -> str:
        number = len(self.warnings())
        return f", with {files.count(number, 'warning')}" if number else ""

    def _own(self, message: Any) -> str:
        text = message if isinstance(message, str) else json.dumps(message)
        return self.translator.original(text.replace(self.drawn_in, DRAWING) if self.drawn_in else text)

    def _named(self, text: str) -> str:
        """Return a text with the names of machines in place of their agent ids."""
        names = {machine.agent: machine.name for machine in self.pod.machines if machine.agent != machine.name}
        if not names:
            return text
        ids = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        return re.sub(rf"(?<![\w.-])({ids})(?![\w-]|\.\w)", lambda found: names[found[1]], text)

    def _lines(self, diffs: Sequence[Any]) -> Iterator[str]:
        """Yield the changed lines of the differences of a task."""
        for diff in diffs:
            if not isinstance(diff, dict):
                continue
            if prepared := diff.get("prepared"):
                lines = list(_changed_lines(str(prepared)))
            else:
                own = self.translator.original
                before, after = _as_lines(diff.get("before"), own), _as_lines(diff.get("after"), own)
                compared = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
                lines = [line for line in compared if not line.startswith("@@")]
            yield from map(self.translator.original, lines)


def counts(run: Run, name: str) -> dict[str, Any] | None:
    """Return changes, failures, warnings and seconds of a phase in a run; None if the run did not reach it."""
    phases = [phase for phase in run.phases if phase.name == name]
    if not phases:
        return None
    return {
        "changes": sum(len(phase.changes) for phase in phases),
        "failures": sum(len(phase.failures) for phase in phases),
        "warnings": sum(len(phase.warnings) for phase in phases),
        "seconds": round(sum(phase.ended - phase.begun for phase in phases), 1),
    }


def _state(run: Run, name: str) -> str:
    found = counts(run, name)
    if found is None:
        return "not reached"
    if found["failures"]:
        return "FAILED"
    if found["changes"]:
        return changes(found["changes"])
    return files.count(found["warnings"], "warning") if found["warnings"] else "ok"


def changes(number: int) -> str:
    """Return a number of changes as text."""
    return files.count(number, "change")


def _changed_lines(prepared: str) -> Iterator[str]:
    """Yield the changed lines of a unified diff, after the unchanged lines of their sections, such as an interface."""
    sections: dict[int, str] = {}  # unchanged lines above, by indentation
    for line in prepared.splitlines():
        text = line[1:]
        if line.startswith("@@"):
            sections.clear()
        elif text.strip(" !") and line[:3] not in ("+++", "---"):
            depth = len(text) - len(text.lstrip())
            sections = {indentation: above for indentation, above in sections.items() if indentation < depth}
            if line[0] in "+-":
                yield from sections.values()
                sections.clear()
                yield line
            else:
                sections[depth] = line


def _as_lines(value: Any, own: Callable[[str], str]) -> list[str]:
    """Return a text as lines, and data as lines of path and value; ``own`` translates the names in paths."""
    if isinstance(value, str):
        return value.splitlines()
    return [f"{'.'.join(map(own, path))}: {leaf}" for path, leaf in _leaves(value, ())]


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values of nested mappings and lists with their paths."""
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], (*path, str(key)))
    elif isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value):
        for number, each in enumerate(value):
            yield from _leaves(each, (*path, str(number)))
    elif value not in (None, {}, []):
        yield path, value
