# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight checks of a bring-up. They change nothing."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shutil
import socket
import typing as t
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from ansible.module_utils.ansible_release import __version__ as ansible_core

from .pod.load import PodError, load
from .runner import Task, TaskError
from .vipu.client import Client, Connection, VipuError
from .vipu.contract import virmgrpc
from .vipu.options import VIPU, Run, connection
from .vipu.ports import AGENT_PORT

# The oldest tested releases.
LIBRARIES = {
    "grpcio": "1.80",
    "protobuf": "6.31",
    "netaddr": "1.1",
    "PyYAML": "6.0",
    "pyeapi": "1.0",
    "pysnmp": "7.1.8",
    "cryptography": "42",  # pysnmp encrypts with it
    "openstacksdk": "4.0",
}
PYTHON = "3.11"
ANSIBLE_CORE = "2.18"

_AT_ONCE = 64  # agents in parallel
_AGENT_SECONDS = 2.0


@dataclass(frozen=True)
class Check:
    """Result of one check. ``problem`` is the message with the remedy, None without a problem."""

    name: str
    found: str
    problem: str | None = None


def versions() -> t.Iterator[Check]:
    """Yield the checks of Python, Ansible and the libraries that the collection imports."""
    yield _version("Python", platform.python_version(), PYTHON, "run Ansible with a newer Python")
    yield _version("ansible-core", ansible_core, ANSIBLE_CORE, "pip install 'ansible-core>=%s'" % ANSIBLE_CORE)
    for name, oldest in LIBRARIES.items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            remedy = "%s is missing in this Python: pip install '%s>=%s'" % (name, name, oldest)
            yield Check(name, "missing", remedy)
        else:
            yield _version(name, found, oldest, "pip install '%s>=%s'" % (name, oldest))


def _version(name: str, found: str, oldest: str, remedy: str) -> Check:
    if _numbers(found) >= _numbers(oldest):
        return Check(name, found)
    return Check(name, found, "%s %s is older than %s: %s" % (name, found, oldest, remedy))


def _numbers(version: str) -> list[int]:
    match = re.match(r"\d+(\.\d+)*", version)
    return [int(part) for part in match.group().split(".")] if match else []


def pod(pod_file: str, machines_file: str | None) -> Check:
    """Check pod.yml and machines.csv."""
    try:
        model = load(pod_file, machines_file)
    except PodError as error:
        return Check("POD", "wrong", str(error))
    counts = (
        (len(model.machines), "IPU-Machine"),
        (len(model.racks), "rack"),
        (len(model.clusters), "cluster"),
        (len(model.allocations), "allocation"),
        (len(model.partitions), "partition"),
    )
    found = ", ".join("%d %s%s" % (count, noun, "" if count == 1 else "s") for count, noun in counts)
    return Check("POD", "%s with %s" % (model.name, found))


def controller(connection: Connection) -> Check:
    """Check that the controller returns its version."""
    name = "controller %s" % connection.address
    with Client(connection) as client:
        try:
            version = client.call(client.version.GetVersion, virmgrpc.VersionRequest(), "get the version").version
        except VipuError as error:
            return Check(name, "not reached", str(error).rstrip("."))
    return Check(name, "version %s" % version)


def command(name: str, path: str) -> Check:
    """Check that a command of the transport cli is executable."""
    found = shutil.which(str(Path(path).expanduser()))
    if found:
        return Check(name, found)
    return Check(name, "missing", "%s is not an executable file: install %s or set its path" % (path, name))


def agents(rows: t.Sequence[t.Mapping[str, t.Any]]) -> Check:
    """Check that all agents accept a connection."""

    def reason(row: t.Mapping[str, t.Any]) -> str | None:
        try:
            socket.create_connection((row["host"], row["port"]), _AGENT_SECONDS).close()
        except OSError as error:
            return (error.strerror or str(error)).lower()
        return None

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        reasons = list(pool.map(reason, rows))
    silent = [(row, why) for row, why in zip(rows, reasons, strict=True) if why]
    found = "%d of %d respond" % (len(rows) - len(silent), len(rows))
    if not silent:
        return Check("agents", found)
    named = ", ".join("%s (%s:%s, %s)" % (row["id"], row["host"], row["port"], why) for row, why in silent[:4])
    more = " and %d more" % (len(silent) - 4) if len(silent) > 4 else ""
    do, machines = ("does", "the IPU-Machine is") if len(silent) == 1 else ("do", "the IPU-Machines are")
    who = "agent" if len(silent) == 1 else "agents"
    problem = "%s %s%s %s not respond: check that %s on and connected" % (who, named, more, do, machines)
    return Check("agents", found, problem)


def _run(run: Run) -> dict[str, t.Any]:
    """Run all checks. Raises TaskError with all problems."""
    params = run.params
    checks = list(versions())
    if params["pod_file"]:
        checks.append(pod(params["pod_file"], params["machines_file"]))
    if params["reach"]:
        checks.append(controller(connection(params)))
    if params["reach"] and params["transport"] == "cli":
        checks += [command(name, params["%s_path" % name.replace("-", "_")]) for name in ("vipu-admin", "vipu")]
    if params["reach"] and params["agents"]:
        checks.append(agents(params["agents"]))
    problems = [c.problem[:1].upper() + c.problem[1:].rstrip(".") + "." for c in checks if c.problem]
    result = {"changed": False, "checks": [asdict(check) for check in checks], "report": _lines(checks)}
    if problems:
        raise TaskError(
            "Cannot start a bring-up: preflight checks failed. %s" % " ".join(problems), **result, problems=problems
        )
    return {**result, "problems": []}


def _lines(checks: t.Sequence[Check]) -> list[str]:
    width = max(len(check.name) for check in checks)
    return ["%-4s %-*s  %s" % ("ok" if c.problem is None else "FAIL", width, c.name, c.found) for c in checks]


POD_PREFLIGHT = Task(
    VIPU,
    {
        "pod_file": {"type": "path"},
        "machines_file": {"type": "path"},
        "reach": {"type": "bool", "default": True},
        "agents": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "id": {"type": "str", "required": True},
                "host": {"type": "str", "required": True},
                "port": {"type": "int", "default": AGENT_PORT},
            },
        },
    },
    _run,
)
