# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of ``site.yml`` against the twin, with the results of every task."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from openipu.pod_files import ansible_settings
from openipu.pod_files.rehearsal.inventory import ENCRYPTED
from openipu.process.background import STOP_SECONDS

_PACKAGE = Path(__file__).parent
PLAYBOOK = "openipu.pod.site"
RESULTS = "OPENIPU_REHEARSAL_RESULTS"
GUARD = "OPENIPU_REHEARSAL_GUARD"
# Variables and groups of the phase "Check credentials" in preflight.yml. Keys are the option 'having' of the lookup.
EXAMINED = {
    None: ("vipu_connection", "vipu_partition_connection"),
    "eos_connection": ("eos_connection", "eos_config"),
    "pdu_connection": ("pdu_connection", "pdu_config"),
}
EXAMINED_GROUPS = ("switches", "pdus", "controllers")
_CREDENTIALS = {"eos_connection": "switches", "pdu_connection": "pdus"}  # with the group that needs them
_EXAMINATION_SECONDS = 600  # maximum duration of the search for undefined variables
_SHOWN_OUTPUT = 500  # maximum length of unexpected output in a message
_CABLE_KEYS = ("device", "connector", "port")  # of a finding of openipu.pod.eos_pod_info
_CONFIG = f"""\
[defaults]
callback_result_format = yaml
gathering = explicit
retry_files_enabled = false

[connection]
pipelining = true

{ansible_settings.INVENTORY}"""


class RehearsalError(Exception):
    """Raised when a rehearsal cannot run, with a message for users."""

    error_code = "OPU804"


@dataclass
class Phase:
    """Results of one play of a run."""

    name: str
    begun: float
    ended: float
    results: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def changes(self) -> list[Mapping[str, Any]]:
        """Results that changed something, or would."""
        return [each for each in self.results if each["changed"]]

    @property
    def failures(self) -> list[Mapping[str, Any]]:
        """Failures that ended the play on a host. A rescue section handled the others."""
        last = {each["host"]: each for each in self.results}
        return [each for each in last.values() if each["kind"] == "failed" and not each["ignored"]]

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings of modules, and the cables that a switch does not find. They do not fail the run."""
        return [
            {"host": each["host"], "message": message, **cable}
            for each in self.results
            for message, cable in (
                *((found["reason"], {key: found[key] for key in _CABLE_KEYS}) for found in each["findings"]),
                *((text, {}) for text in dict.fromkeys(each["warnings"])),
            )
        ]


@dataclass
class Run:
    """One run of the playbook. ``phases`` are the plays that had hosts."""

    check: bool
    seconds: float
    succeeded: bool
    log: Path
    phases: list[Phase]


def guarded_environment(violations: Path) -> dict[str, str]:
    """Return this environment for programs that may use loopback only. ``violations`` records their other attempts."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.lower().endswith("_proxy") and not name.startswith(("VIPU_", "ANSIBLE_"))
    }
    for name in ("ANSIBLE_COLLECTIONS_PATH", "ANSIBLE_HOME"):
        if name in os.environ:
            kept[name] = os.environ[name]
    path = [str(_PACKAGE / "guard"), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    programs = [str(Path(sys.executable).parent), kept.get("PATH", os.defpath)]
    return {**kept, GUARD: str(violations), "PYTHONPATH": os.pathsep.join(path), "PATH": os.pathsep.join(programs)}


def run(
    inventory: Path,
    variables: Path,
    environment: Mapping[str, str],
    check: bool,
    report: Callable[[Phase], None],
    begin: Callable[[str], None] = lambda _name: None,
) -> Run:
    """Run the playbook. Raises RehearsalError if it cannot start.

    ``begin`` is called with the name of each phase when it begins, and ``report`` at its end.

    An exception, such as SystemExit of a signal, ends the playbook and its processes.
    """
    program = Path(sys.executable).parent / "ansible-playbook"
    if not program.exists():
        raise RehearsalError(
            f"Cannot run openipu.pod.site: {program} is missing. Install ansible-core in this environment."
        )
    folder = inventory.parent
    log = folder / ("check.log" if check else "site.log")
    config = folder / "ansible.cfg"
    config.write_text(_CONFIG)
    command = [str(program), PLAYBOOK, "-i", str(inventory), "-e", f"@{variables}", "--diff"]
    command += ["--check"] if check else []
    reading, writing = os.pipe()
    begun = time.monotonic()
    settings = {
        "ANSIBLE_CONFIG": str(config),
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_CALLBACK_PLUGINS": str(_PACKAGE / "plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "openipu_rehearsal",
        RESULTS: str(writing),
    }
    with log.open("w") as output, os.fdopen(reading) as lines:
        with subprocess.Popen(  # noqa: S603  ansible-playbook of this environment
            command,
            cwd=folder,
            env={**environment, **settings},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[writing],
        ) as process:
            os.close(writing)
            phases = []
            try:
                for phase in _phases(lines, begin):
                    phases.append(phase)
                    report(phase)
            except BaseException:
                _stop(process.pid)
                raise
        return Run(check, time.monotonic() - begun, process.returncode == 0, log, phases)


@dataclass(frozen=True)
class Undefined:
    """Names of undefined variables, and of devices without credentials."""

    examined: Sequence[str] = ()  # in the settings that the preflight checks examine
    skipped: Sequence[str] = ()  # in those of devices without credentials, which have the credentials of the twin
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)  # see ``Variables``


def undefined(inventory: Path, environment: Mapping[str, str]) -> Undefined:
    """Return the undefined variables in the settings of controller, switches and PDUs, and devices without credentials.

    The result is empty if Ansible fails. Then the playbook fails too, with the message. Raises RehearsalError if
    Ansible does not end, or prints something else.
    """
    config = inventory.parent / "ansible.cfg"
    config.write_text(_CONFIG)
    settings = {
        "ANSIBLE_CONFIG": str(config),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal",
    }
    program = Path(sys.executable).parent / "ansible"
    command = [str(program), "localhost", "-i", str(inventory), "-m", "ansible.builtin.debug"]
    message = {"examined": f"{{{{ {_queries(skip=True)} }}}}", "every": f"{{{{ {_queries(skip=False)} }}}}"}
    lacking = {name: f"{{{{ {_lacking(name, group)} }}}}" for name, group in _CREDENTIALS.items()}
    with subprocess.Popen(  # noqa: S603  ansible of this environment
        [*command, "-a", json.dumps({"msg": message | {"lacking": lacking}})],
        cwd=inventory.parent,
        env={**environment, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=_EXAMINATION_SECONDS)
        except BaseException as error:
            _stop(process.pid)
            if isinstance(error, subprocess.TimeoutExpired):
                raise RehearsalError(
                    f"Cannot search for undefined variables: Ansible ran longer than {_EXAMINATION_SECONDS} s. "
                    "Check the lookups in group_vars and host_vars."
                ) from None
            raise
    if process.returncode:
        return Undefined()
    try:
        found = json.loads(output.partition("=> ")[2])["msg"]
        examined, every = ([each["name"] for each in found[key]] for key in ("examined", "every"))
        lacking = {name: names for name, names in found["lacking"].items() if names}
    except (ValueError, LookupError, TypeError):
        printed = " ".join((output + errors).split())[-_SHOWN_OUTPUT:]
        raise RehearsalError(
            f"Cannot search for undefined variables: the output of {program} has no result: {printed!r}. "
            "Check the installation of ansible-core."
        ) from None
    return Undefined(
        [name for name in examined if name.isidentifier()],
        [name for name in every if name.isidentifier() and name not in examined],
        lacking,
    )


def _queries(skip: bool) -> str:
    """Return the expression for the undefined variables. ``skip`` omits those of devices without credentials."""
    hosts = " + ".join(f"groups['{group}']" for group in EXAMINED_GROUPS)
    return " + ".join(
        f"query('openipu.pod.undefined_variables', {', '.join(map(repr, terms))}, hosts={hosts}"
        + (f", having='{having}')" if having and skip else ")")
        for having, terms in EXAMINED.items()
    )


def _lacking(name: str, group: str) -> str:
    """Return the expression for the devices of a group that neither have a variable nor an encrypted file."""
    without = "".join(f" | reject('ansible.builtin.contains', '{each}')" for each in (name, ENCRYPTED))
    return f"groups['{group}'] | map('extract', hostvars){without} | map(attribute='pod_device') | list"


def _stop(pid: int) -> None:
    """End a process and all processes that it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        processes = [first, *first.children(recursive=True)]
        for end in (psutil.Process.terminate, psutil.Process.kill):
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    end(process)
            _ended, processes = psutil.wait_procs(processes, STOP_SECONDS)


def last_lines(log: Path) -> str:
    """Return the error messages of a log, or its last line."""
    lines = log.read_text(errors="replace").splitlines()
    errors = [line for line in lines if line.startswith(("[ERROR]", "ERROR!"))]
    return " ".join(errors[-3:] or [line for line in lines if line.strip()][-1:])


def _phases(lines: Iterator[str], begin: Callable[[str], None]) -> Iterator[Phase]:
    """Yield the plays with results, each when the next one begins. ``begin`` is called with the name of each play."""
    current: Phase | None = None
    for line in lines:
        event = json.loads(line)
        if event["kind"] == "play":
            if current and current.results:
                yield current
            current = Phase(event["play"], event["time"], event["time"])
            begin(event["play"])
        elif current:
            current.results.append(event)
            current.ended = event["time"]
    if current and current.results:
        yield current
