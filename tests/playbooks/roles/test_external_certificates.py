# SPDX-License-Identifier: GPL-3.0-or-later
"""External certificates of the role `vipu_server`: the next run completes one that failed after their activation."""

from __future__ import annotations

import getpass
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT

ROLE = ROOT / "roles" / "vipu_server"
BIN = Path(sys.executable).parent
HOST = "127.0.0.1"

pytestmark = pytest.mark.timeout(900)  # each test runs several playbooks


def vipu_server(*arguments: str) -> str:
    done = subprocess.run([BIN / "vipu-server", *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Controller:
    """A stopped controller with its own certificates, and external ones to install."""

    folder: Path
    external: Path

    @property
    def settings(self) -> dict[str, Any]:
        """Variables of the role."""
        files = {
            "ca": "server/ca.crt",
            "certificate": "server/server.crt",
            "key": "server/server.key",
            "client_certificate": "client/client.crt",
            "client_key": "client/client.key",
        }
        return {
            "ansible_python_interpreter": sys.executable,
            "vipu_server_as_user": [],
            "vipu_server_user": getpass.getuser(),
            "vipu_server_program": str(BIN / "vipu-server"),
            "vipu_server_host": HOST,
            "vipu_server_folder": str(self.folder),
            "vipu_server_certificates": {name: str(self.external / file) for name, file in files.items()},
        }

    def run(self, *options: str, interrupted: bool = False) -> list[str]:
        """Install the certificates, and return the names of changed tasks and handlers."""
        stop = {"name": "Stop the controller", "ansible.builtin.command": "true"}
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "vars_files": [str(ROLE / name / "main.yml") for name in ("defaults", "vars")],
            "tasks": [
                {"ansible.builtin.include_tasks": str(ROLE / "tasks/certificates_external.yml")},
                {"ansible.builtin.fail": {"msg": "interrupted"}, "when": interrupted},
                {"ansible.builtin.meta": "flush_handlers"},
                {
                    "ansible.builtin.include_tasks": str(ROLE / "tasks/admin_certificate.yml"),
                    "when": "vipu_server_certs_activated is changed and not ansible_check_mode",
                },
            ],
            "handlers": [stop],
        }
        book = self.folder.parent / "play.yml"
        book.write_text(yaml.safe_dump([play]))
        command = [BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", json.dumps(self.settings)]
        done = subprocess.run([*command, *options, book], cwd=ROOT, capture_output=True, text=True, timeout=600)
        assert (done.returncode != 0) == interrupted, done.stdout + done.stderr
        blocks = done.stdout.split("\n\n")
        return [block.partition("[")[2].partition("]")[0] for block in blocks if "\nchanged: " in block]


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    made = Controller(tmp_path / "controller", tmp_path / "external")
    made.folder.mkdir(mode=0o700)
    vipu_server("--tls-init", str(made.external), "--tls-san", HOST)
    address = ("--tls-init", str(made.folder / "certs"), "--tls-san", HOST)
    vipu_server(*address, "--init", "--secure", "--database", str(made.folder / "vipu-server.db"))
    return made


STOP, REGISTER = "Stop the controller", "Register the certificate of the first administrator"


def test_the_next_run_completes_an_interrupted_one(controller: Controller) -> None:
    assert STOP not in controller.run(interrupted=True)
    assert (controller.folder / "certs-external/client/client.crt").exists()
    assert controller.run("--check") == ["Activate the certificates"]
    completed = controller.run()
    assert (STOP in completed, REGISTER in completed) == (True, True), completed
    assert controller.run() == []


def test_the_administrator_keeps_the_certificate_of_the_first_of_two_interrupted_runs(controller: Controller) -> None:
    """The certificate that the administrator has is that before both runs."""
    controller.run(interrupted=True)
    other = Controller(controller.folder, controller.external.with_name("other"))
    vipu_server("--tls-init", str(other.external), "--tls-san", HOST)
    other.run(interrupted=True)
    assert REGISTER in other.run()
