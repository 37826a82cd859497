# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers that run playbooks and return their results."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.integration.collection import ansible_commands

RECAP = re.compile(r"^localhost\s*: ok=(\d+)\s+changed=(\d+)\s+unreachable=0\s+failed=(\d+)", re.MULTILINE)
RESULT = re.compile(r"^(\S+) \| ([A-Z]+)!? => (?=\{)", re.MULTILINE)


@dataclass
class Played:
    """Outcome of one run."""

    output: str
    ok: int
    changed: int
    failed: int


def play(
    folder: Path,
    tasks: list[dict[str, Any]],
    *options: str,
    handlers: Sequence[dict[str, Any]] = (),
    **variables: Any,
) -> Played:
    """Run tasks and the handlers that they notify, on this host over a local connection."""
    output = _run(folder, tasks, options, variables, {}, handlers=handlers)
    match = RECAP.search(output)
    assert match, output
    return Played(output, *map(int, match.groups()))


def results(folder: Path, tasks: list[dict[str, Any]], *options: str, **variables: Any) -> list[dict[str, Any]]:
    """Return the results of all tasks in order, with diffs and the value failed."""
    return results_by_host(folder, {}, tasks, *options, **variables)["localhost"]


def rejections(folder: Path, tasks: list[dict[str, Any]]) -> list[str]:
    """Return the messages of tasks that all fail."""
    done = results(folder, [{**task, "ignore_errors": True} for task in tasks])
    assert [result["failed"] for result in done] == [True] * len(tasks)
    return [result["msg"] for result in done]


def results_by_host(
    folder: Path, hosts: dict[str, dict[str, Any]], tasks: list[dict[str, Any]], *options: str, **variables: Any
) -> dict[str, list[dict[str, Any]]]:
    """Return the results by host, each host with its variables; on this host when there are none."""
    output = _run(folder, tasks, [*options, "-vvv"], variables, {"ANSIBLE_STDOUT_CALLBACK": "minimal"}, hosts)
    decoder = json.JSONDecoder()
    found: dict[str, list[dict[str, Any]]] = {}
    for match in RESULT.finditer(output):
        result = {**decoder.raw_decode(output, match.end())[0], "failed": match[2] == "FAILED"}
        found.setdefault(match[1], []).append(result)
    assert found, output
    return found


def _run(
    folder: Path,
    tasks: list[dict[str, Any]],
    options: Sequence[str],
    variables: dict[str, Any],
    env: dict[str, str],
    hosts: dict[str, dict[str, Any]] | None = None,
    handlers: Sequence[dict[str, Any]] = (),
) -> str:
    inventory = "localhost,"
    if hosts:
        inventory = str(folder / "hosts.yml")
        Path(inventory).write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    book = {
        "hosts": "all",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": sys.executable, **variables},
        # Ansible 2.18 requires all variables of defaults to exist.
        "module_defaults": {"group/openipu.pod.vipu": "{{ controller }}"} if "controller" in variables else {},
        "tasks": tasks,
        "handlers": list(handlers),
    }
    file = folder / "playbook.yml"
    file.write_text(yaml.safe_dump([book], sort_keys=False))
    elsewhere = folder / "elsewhere"  # relative paths start at the playbook, not at the working folder
    elsewhere.mkdir(exist_ok=True)
    home = Path(_home().name)
    done = ansible_commands.run(
        "ansible-playbook",
        *("-i", inventory, file, *options),
        environment={
            **{name: value for name, value in os.environ.items() if not name.startswith(("VIPU_", "ANSIBLE_"))},
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "ANSIBLE_HOME": str(home),
            "ANSIBLE_REMOTE_TEMP": str(home / "remote"),
            "ANSIBLE_ASYNC_DIR": str(home / "async"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_ENABLED": "ansible.builtin.host_list,ansible.builtin.yaml",  # do not load others
            "ANSIBLE_PIPELINING": "true",  # as ansible.cfg has it
            "ANSIBLE_NOCOLOR": "true",
            **env,
        },
        folder=elsewhere,
        seconds=300,
    )
    return done.stdout + done.stderr


@cache
def _home() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of Ansible's own files, one for all runs: Ansible reads its settings once."""
    return tempfile.TemporaryDirectory()
