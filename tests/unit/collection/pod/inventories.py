# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories as Ansible reads them: the output of ``ansible-inventory``, and values of variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.integration.collection import ansible_commands

BIN = Path(sys.executable).parent


@dataclass
class Inventory:
    """Output of ``ansible-inventory --list``."""

    data: dict[str, Any]
    size: int  # bytes

    def hosts(self, group: str) -> list[str]:
        entry = self.data.get(group, {})
        return entry.get("hosts", []) + [host for child in entry.get("children", []) for host in self.hosts(child)]

    def vars(self, host: str) -> dict[str, Any]:
        return self.data["_meta"]["hostvars"][host]


def run(program: str, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }
    environment = {**os.environ, **own, **environment}
    return ansible_commands.run(program, *arguments, environment=environment, seconds=300)


def sources(paths: Sequence[Path]) -> list[str]:
    return [word for path in paths for word in ("-i", str(path))]


def parse(*paths: Path, options: Sequence[str] = ()) -> Inventory:
    done = run("ansible-inventory", *sources(paths), "--list", *options)
    assert done.returncode == 0, done.stderr
    # Ansible marks text that is not a template of the user.
    data = json.loads(done.stdout, object_hook=lambda item: item.get("__ansible_unsafe", item))
    return Inventory(data, len(done.stdout.encode()))


def rejection(*paths: Path) -> str:
    done = run("ansible-inventory", *sources(paths), "--list")
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def value(path: str | Path, host: str, expression: str, **environment: str) -> Any:
    """Return the value of an expression on a host."""
    message = json.dumps({"msg": f"{{{{ {expression} }}}}"})
    done = run("ansible", "-i", path, host, "-m", "ansible.builtin.debug", "-a", message, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.partition("=> ")[2])["msg"]
