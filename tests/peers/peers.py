# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks of third-party collections against switches of the twin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import yaml

from openipu.vipu.tls import load
from tests import ROOT
from tests.integration.eos_switches import PASSWORD, USER, ServedSwitch

PEERS = Path(os.environ.get("OPENIPU_PEERS", ROOT / ".cache/peers"))
Task = dict[str, Any]


def play(folder: Path, switch: ServedSwitch, tasks: list[Task], *options: str) -> list[dict[str, Any]]:
    """Run tasks of `arista.eos` on a switch, and return their results in order."""
    assert (PEERS / "ansible_collections/arista/eos").is_dir(), f"No arista.eos in {PEERS}: run 'make test-peers'."
    assert switch.certs is not None
    host = {
        "ansible_host": "127.0.0.1",
        "ansible_connection": "ansible.netcommon.httpapi",
        "ansible_network_os": "arista.eos.eos",
        "ansible_user": USER,
        "ansible_password": PASSWORD,
        "ansible_become": True,
        "ansible_become_method": "enable",
        "ansible_httpapi_port": switch.port,
        "ansible_httpapi_use_ssl": True,
        "ansible_httpapi_validate_certs": True,
        "ansible_httpapi_ca_path": str(switch.certs / "ca" / load.CA),
        "ansible_python_interpreter": sys.executable,
    }
    inventory = folder / "peers.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": {"switch": host}}}))
    playbook = folder / "play.yml"
    end = {"name": "Close the connection", "ansible.builtin.meta": "reset_connection"}
    playbook.write_text(
        yaml.safe_dump([{"hosts": "switch", "gather_facts": False, "tasks": [*tasks, end]}], sort_keys=False)
    )
    # Socket paths are limited in length, and test folders have long names.
    with tempfile.TemporaryDirectory(prefix="eos-") as sockets:
        completed = subprocess.run(
            [Path(sys.executable).parent / "ansible-playbook", "-i", inventory, playbook, *options],
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "HOME": str(folder),
                "ANSIBLE_HOME": str(folder / ".ansible"),
                "ANSIBLE_COLLECTIONS_PATH": f"{PEERS}:{sysconfig.get_path('purelib')}",
                "ANSIBLE_PERSISTENT_CONTROL_PATH_DIR": sockets,
                "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
                "ANSIBLE_NOCOLOR": "true",
            },
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
    output = completed.stdout[completed.stdout.find("{") :]
    assert output, completed.stdout + completed.stderr
    tasks_run = json.JSONDecoder().raw_decode(output)[0]["plays"][0]["tasks"]
    results = [task["hosts"]["switch"] for task in tasks_run if "switch" in task["hosts"]]
    for result in results:
        assert not result.get("failed"), json.dumps(result, indent=1) + completed.stderr
    assert len(results) >= len(tasks), output + completed.stderr
    return results[: len(tasks)]
