# SPDX-License-Identifier: GPL-3.0-or-later
"""Running playbooks as users do, and reading what they did."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

RECAP = re.compile(r"^localhost\s*: ok=(\d+)\s+changed=(\d+)\s+unreachable=0\s+failed=(\d+)", re.MULTILINE)


@dataclass
class Played:
    """The outcome of one run."""

    output: str
    ok: int
    changed: int
    failed: int


def play(folder: Path, tasks: list[dict[str, Any]], *options: str, **variables: Any) -> Played:
    """Run tasks on this host over a local connection."""
    book = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": sys.executable, **variables},
        "module_defaults": {"group/openipu.pod.vipu": "{{ controller }}"},
        "tasks": tasks,
    }
    file = folder / "playbook.yml"
    file.write_text(yaml.safe_dump([book], sort_keys=False))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", "localhost,", file, *options],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith(("VIPU_", "ANSIBLE_"))},
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "ANSIBLE_HOME": str(folder / ".ansible"),
            "ANSIBLE_REMOTE_TEMP": str(folder / ".ansible" / "remote"),
            "ANSIBLE_ASYNC_DIR": str(folder / ".ansible" / "async"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )
    output = done.stdout + done.stderr
    match = RECAP.search(output)
    assert match, output
    return Played(output, *map(int, match.groups()))
