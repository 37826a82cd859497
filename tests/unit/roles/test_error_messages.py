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

import pytest
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


def evaluate(folder: Path, role: str, expression: str, *tasks: dict[str, Any], **variables: Any) -> str:
    """Run tasks of a role, and return the value of an expression with its variables."""
    files = [path for kind in ("defaults", "vars") for path in sorted((ROOT / "roles" / role / kind).rglob("*.yml"))]
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars_files": [str(path) for path in files],
        "tasks": [*tasks, {"ansible.builtin.copy": {"content": expression, "dest": str(folder / "value")}}],
    }
    (folder / "play.yml").write_text(yaml.safe_dump([play]))
    given = json.dumps({"ansible_python_interpreter": sys.executable, **variables})
    command = [Path(sys.executable).with_name("ansible-playbook"), "-i", "localhost,", "-c", "local", "-e", given]
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    result = subprocess.run(
        [*command, folder / "play.yml"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return (folder / "value").read_text()


@pytest.mark.parametrize("error", [printed(CAUSE), f"Error: {CAUSE}\n"], ids=["with code", "without code"])
def test_the_error_of_a_controller_command_is_reported_without_its_prefix(tmp_path: Path, error: str) -> None:
    value = evaluate(tmp_path, "vipu_server", "{{ vipu_server_error }}", ansible_failed_result={"stderr": error})
    assert value == CAUSE.removesuffix(".")


@pytest.mark.parametrize("error", [printed(CAUSE), f"Error: {CAUSE}\n"], ids=["with code", "without code"])
def test_the_reason_of_a_failed_start_is_the_last_error_in_the_log(tmp_path: Path, error: str) -> None:
    (tmp_path / "log").write_text(f"{STARTED}\n{error}")
    (tmp_path / "journalctl").write_text(f"#!/bin/sh\nexec cat {tmp_path / 'log'}\n")
    (tmp_path / "journalctl").chmod(0o755)
    include = {"ansible.builtin.include_tasks": str(ROOT / "roles/vipu_server/tasks/failure_reason.yml")}
    timeout = {
        "msg": "Cannot use the controller on 127.0.0.1:8090: it does not serve after 10 s: no response. See its log."
    }
    value = evaluate(tmp_path, "vipu_server", "{{ vipu_server_reason }}", include, ansible_failed_result=timeout)
    assert value == CAUSE.removesuffix(".")


@pytest.mark.parametrize("error", [printed(CAUSE), f"Error: {CAUSE}\n"], ids=["with code", "without code"])
def test_the_reason_of_failed_agents_is_the_last_error_in_the_log(tmp_path: Path, error: str) -> None:
    journal = {"stdout_lines": [STARTED, error.strip()]}
    value = evaluate(tmp_path, "virm_agent", "{{ virm_agent_last_error }}", virm_agent_journal=journal)
    assert value == CAUSE
