# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of Ansible and of AWX's command line against the stand-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT
from tests.awx.standin.app import ADMINISTRATOR, PASSWORD
from tests.awx.standin.server import Server

PEERS = Path(os.environ.get("OPENIPU_PEERS", ROOT / ".cache/peers"))
CLIENTS = Path(os.environ.get("OPENIPU_AWX", ROOT / ".cache/awx"))
DESCRIPTION = ROOT / "tests/awx/description"
PREFIXES = ("CONTROLLER_", "TOWER_", "ANSIBLE_", "SSL_")


@dataclass(frozen=True)
class Run:
    """Result of one run of a playbook."""

    code: int
    output: str
    result: dict[str, Any]

    @property
    def changes(self) -> list[str]:
        """Changes that the role reported."""
        assert self.code == 0, self.output
        return list(self.result["changes"])

    @property
    def message(self) -> str:
        """Error message of the role."""
        assert self.code != 0, self.output
        return str(self.result["msg"])


def environment(server: Server, folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of clients, which trust the certificate of the stand-in."""
    assert (PEERS / "ansible_collections/awx/awx").is_dir(), f"No awx.awx in {PEERS}: run 'make test-awx'."
    # Without bytecode, each module would be compiled again.
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(PREFIXES) and name != "PYTHONDONTWRITEBYTECODE"
    }
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "ANSIBLE_HOME": str(folder / ".ansible"),
        "ANSIBLE_COLLECTIONS_PATH": f"{PEERS}:{sysconfig.get_path('purelib')}",
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "SSL_CERT_FILE": str(server.ca),
        "CONTROLLER_HOST": server.url,
        "CONTROLLER_USERNAME": ADMINISTRATOR,
        "CONTROLLER_PASSWORD": PASSWORD,
        **more,
    }


def run_playbook(server: Server, folder: Path, *options: str, variables: Any = None, **env: str) -> Run:
    """Run playbooks/awx.yml with variables, and return the result of the task of the role."""
    given = folder / "variables.yml"
    given.write_text(yaml.safe_dump(variables or {}))
    program = Path(sys.executable).parent / "ansible-playbook"
    completed = subprocess.run(
        [program, ROOT / "playbooks/awx.yml", "-e", f"@{given}", *options],
        env=environment(server, folder, ANSIBLE_STDOUT_CALLBACK="ansible.posix.json", **env),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=500,
    )
    output = completed.stdout + completed.stderr
    return Run(completed.returncode, output, _result(output))


def _result(output: str) -> dict[str, Any]:
    """Return the result that the callback printed as JSON."""
    start = output.find("{\n")
    if start < 0:
        return {"msg": output}
    plays = json.JSONDecoder().raw_decode(output[start:])[0]["plays"]
    tasks = [task for play in plays for task in play["tasks"] if task["task"]["name"].endswith("description to AWX")]
    return dict(tasks[0]["hosts"]["localhost"]) if tasks else {"msg": output}
