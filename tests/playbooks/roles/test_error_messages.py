# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors that programs print, as the roles `vipu_server` and `virm_agent` report them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from openipu.process.failures import ProgramError
from tests import ROOT

CAUSE = "Cannot listen on 10.30.5.99:8090: this machine has no such address."
STARTED = "Started vipu-server.service - V-IPU controller."


def printed(cause: str) -> str:
    """Return what a program prints for an error."""
    output = io.StringIO()
    ProgramError(cause, "OPU615").show(output)
    return output.getvalue()


def evaluate(folder: Path, role: str, *cases: tuple[list[dict[str, Any]], str, dict[str, Any]]) -> list[str]:
    """Return the value of each case: tasks of a role, and an expression with its variables and further ones."""
    files = [path for kind in ("defaults", "vars") for path in sorted((ROOT / "roles" / role / kind).rglob("*.yml"))]
    tasks: list[dict[str, Any]] = []
    for number, (before, expression, variables) in enumerate(cases):
        copy = {"content": expression, "dest": str(folder / f"value{number}")}
        tasks += [{**task, "vars": variables} for task in [*before, {"ansible.builtin.copy": copy}]]
    play = {"hosts": "localhost", "gather_facts": False, "vars_files": [str(path) for path in files], "tasks": tasks}
    (folder / "play.yml").write_text(yaml.safe_dump([play]))
    given = json.dumps({"ansible_python_interpreter": sys.executable})
    command = [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", "-c", "local", "-e", given]
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    result = subprocess.run(
        [*command, folder / "play.yml"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return [(folder / f"value{number}").read_text() for number in range(len(cases))]


ERRORS = (printed(CAUSE), f"Error: {CAUSE}\n")  # with and without code


def test_errors_of_the_controller_are_reported_without_their_prefix(tmp_path: Path) -> None:
    """Those of a command, and the last one in the log after a failed start."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for number, error in enumerate(ERRORS):
        (logs / str(number)).write_text(f"{STARTED}\n{error}")
    (tmp_path / "journalctl").write_text(f'#!/bin/sh\nset -- {logs}/*\ncat "$1"\nrm "$1"\n')
    (tmp_path / "journalctl").chmod(0o755)
    include = {"ansible.builtin.include_tasks": str(ROOT / "roles/vipu_server/tasks/failure_reason.yml")}
    timeout = {
        "msg": "Cannot use the controller on 127.0.0.1:8090: it does not serve after 10 s: no response. See its log."
    }
    commands = [([], "{{ vipu_server_error }}", {"ansible_failed_result": {"stderr": error}}) for error in ERRORS]
    starts = [([include], "{{ vipu_server_reason }}", {"ansible_failed_result": timeout}) for _error in ERRORS]
    values = evaluate(tmp_path, "vipu_server", *commands, *starts)
    assert values == [CAUSE.removesuffix(".")] * 4
    assert not list(logs.iterdir()), "each start reads the log"


def test_the_code_of_a_failed_command(tmp_path: Path) -> None:
    errors = ["Error OPU623: Cannot restore 'a': partitions would lose their records: p.\n", "killed\n"]
    commands = [([], "{{ vipu_server_error_code }}", {"ansible_failed_result": {"stderr": each}}) for each in errors]
    assert evaluate(tmp_path, "vipu_server", *commands) == ["OPU623", ""]


def test_the_reason_of_failed_agents_is_the_last_error_in_the_log(tmp_path: Path) -> None:
    journals = [{"virm_agent_journal": {"stdout_lines": [STARTED, error.strip()]}} for error in ERRORS]
    values = evaluate(tmp_path, "virm_agent", *(([], "{{ virm_agent_last_error }}", journal) for journal in journals))
    assert values == [CAUSE] * 2
