# SPDX-License-Identifier: GPL-3.0-or-later
"""Several controllers replace external certificates together. Otherwise, one message precedes any change."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.unit.collection.pod.inventories import run

ROLE = ROOT / "roles/vipu_server"
NAMES = ("c1", "c2", "c3")
FIRST_CHANGE = "Install the release without activating it"


def checks() -> list[dict[str, Any]]:
    """Return the tasks of the role before its first change."""
    tasks = yaml.safe_load((ROLE / "tasks/open_controller.yml").read_text())
    found = tasks[: [task["name"] for task in tasks].index(FIRST_CHANGE)]
    for task in found:
        if file := task.get("ansible.builtin.include_tasks"):
            task["ansible.builtin.include_tasks"] = str(ROLE / "tasks" / file)
    return found


def check(folder: Path, *options: str) -> list[str]:
    """Run the checks on all hosts, and return the messages of failed tasks."""
    play = {
        "hosts": "all",
        "connection": "local",
        "gather_facts": False,
        "vars_files": [str(ROLE / name / "main.yml") for name in ("defaults", "vars")],
        "tasks": checks(),
    }
    (folder / "play.json").write_text(json.dumps([play]))
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": {name: {} for name in NAMES}}}))
    (folder / "new.pem").write_text("new")
    settings = {
        "ansible_python_interpreter": sys.executable,
        "vipu_server_folder": f"{folder}/{{{{ inventory_hostname }}}}",
        "vipu_server_host": "127.0.0.1",
        "vipu_server_store": "etcd://127.0.0.1",
        "vipu_server_controllers": list(NAMES),
        "vipu_server_certificates": {"client_certificate": str(folder / "new.pem")},
    }
    files = ("-i", folder / "hosts.json", "-e", json.dumps(settings), folder / "play.json")
    done = run("ansible-playbook", *files, *options)
    messages = re.findall(r'FAILED! => {[^{}]*"msg": "([^"]*)"', done.stdout)
    assert (done.returncode != 0) == bool(messages), done.stdout
    return messages


def have_certificates(folder: Path, certs: str) -> None:
    """Give each host the certificates in a folder of this name."""
    for name in NAMES:
        (folder / name / certs / "client").mkdir(parents=True)
        (folder / name / certs / "client/client.crt").touch()


@pytest.mark.parametrize("present", ["certs", "certs-former"])
def test_a_replacement_of_certificates_needs_all_controllers(tmp_path: Path, present: str) -> None:
    have_certificates(tmp_path, present)
    if present != "certs":
        for name in NAMES:
            (tmp_path / name / "certs-external").symlink_to(present)
    (message,) = check(tmp_path, "--limit", "c1,c2")
    assert message.startswith("Cannot replace the certificates of c1, c2: ")
    assert "c3 is not reachable, has failed, or is not part of this run. Nothing was changed." in message
    assert "Run the playbook on c1, c2, c3 together" in message
    assert check(tmp_path) == []


def test_an_incomplete_replacement_is_completed_with_all_controllers(tmp_path: Path) -> None:
    """The new certificates are active, and the administrator does not have them."""
    have_certificates(tmp_path, "certs")
    assert len(check(tmp_path, "--limit", "c1")) == 1
    new = "certs-11507a0e2f5e"  # of the new files
    for name in NAMES:
        (tmp_path / name / "certs-external").symlink_to(new)
    assert check(tmp_path, "--limit", "c1") == []
    (tmp_path / "c1/certs-replaced").symlink_to("certs")
    assert len(check(tmp_path, "--limit", "c1")) == 1


def test_a_new_controller_takes_no_other_one(tmp_path: Path) -> None:
    (tmp_path / "c3").mkdir()
    assert check(tmp_path, "--limit", "c3") == []
