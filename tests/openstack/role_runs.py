# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of a single role on this host."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT

_RECAP = re.compile(r"^localhost\s*: ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=0", re.MULTILINE)


def run_role(folder: Path, role: str, *options: str, fails: bool = False, **variables: Any) -> str:
    """Run a role and return its output."""
    playbook = folder / "role.yml"
    local = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    playbook.write_text(yaml.safe_dump([{**local, "roles": [f"openipu.pod.{role}"]}]))
    variables = {"ansible_python_interpreter": sys.executable, **variables}
    program = Path(sys.executable).with_name("ansible-playbook")
    result = subprocess.run(
        [program, "-i", "localhost,", playbook, "-e", json.dumps(variables), *options],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode != 0) == fails, result.stdout + result.stderr
    return result.stdout


def write_pod64(folder: Path, device: str, setting: str) -> Path:
    """Write a copy of inventory/pod64 in which one device has a further setting, and return its path."""
    source = ROOT / "inventory/pod64"
    line = f"      - name: {device}\n"
    text = (source / "pod.yml").read_text()
    assert text.count(line) == 1
    (folder / "pod.yml").write_text(text.replace(line, f"{line}        {setting}\n"))
    (folder / "machines.csv").write_text((source / "machines.csv").read_text())
    return folder / "pod.yml"


def changed_tasks(folder: Path, role: str, *options: str, **variables: Any) -> int:
    """Run a role and return the number of changed tasks."""
    output = run_role(folder, role, *options, **variables)
    match = _RECAP.search(output)
    assert match, output
    return int(match[1])
