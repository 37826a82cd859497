# SPDX-License-Identifier: GPL-3.0-or-later
"""One role on this host, by a playbook of one line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
_RECAP = re.compile(r"^localhost\s*: ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=0", re.MULTILINE)


def printed(folder: Path, role: str, *options: str, fails: bool = False, **variables: Any) -> str:
    """Run it; what that printed."""
    book = folder / "role.yml"
    local = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    book.write_text(yaml.safe_dump([{**local, "roles": [f"openipu.pod.{role}"]}]))
    variables = {"ansible_python_interpreter": sys.executable, **variables}
    program = Path(sys.executable).with_name("ansible-playbook")
    ended = subprocess.run(
        [program, "-i", "localhost,", book, "-e", json.dumps(variables), *options],
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode != 0) == fails, ended.stdout + ended.stderr
    return ended.stdout


def play(folder: Path, role: str, *options: str, **variables: Any) -> int:
    """Run it; how many of its tasks changed something."""
    said = printed(folder, role, *options, **variables)
    match = _RECAP.search(said)
    assert match, said
    return int(match[1])
