# SPDX-License-Identifier: GPL-3.0-or-later
"""The role ``vipu_server`` registers replaced certificates of the first administrator for several controllers."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from openipu.vipu.domain.model import User
from openipu.vipu.storage.etcd import content
from openipu.vipu.storage.etcd.keys import Location
from openipu.vipu.tls import load, user_certificates
from tests import ROOT
from tests.integration import vipu_servers
from tests.unit.collection.pod.inventories import run

ROLE = ROOT / "roles/vipu_server"
NAMES = ("c1", "c2", "c3")


def vipu_server(*arguments: str) -> None:
    done = vipu_servers.run(*arguments)
    assert done.returncode == 0, done.stderr


def fingerprint(certs: Path) -> str:
    return user_certificates.fingerprint(load.read(certs / "client/client.crt"))


@pytest.mark.parametrize("different", [False, True], ids=["same", "different"])
def test_all_controllers_register_their_certificate(tmp_path: Path, location: Location, different: bool) -> None:
    """The command needs the store for itself."""
    former = tmp_path / "c1/certs"
    former.parent.mkdir()
    database = ("--store", str(location), "--database", str(former.parent / "vipu-server.db"))
    vipu_server("--init", "--secure", "--tls-init", str(former), *database)
    for name in NAMES:
        folder = tmp_path / name
        if name == "c1" or different:
            vipu_server("--tls-init", str(folder / "certs-external"))
        else:
            shutil.copytree(tmp_path / "c1/certs-external", folder / "certs-external")
        (folder / "certs-replaced").symlink_to(former)
    program = tmp_path / "vipu-server"  # fails while another one runs
    program.write_text(
        f"#!/bin/sh\nmkdir {tmp_path}/running || exit 3\ncd {ROOT}\n"
        f'{sys.executable} -m openipu.vipu.server.main "$@"; status=$?\nrmdir {tmp_path}/running\nexit $status\n'
    )
    program.chmod(0o755)
    play = {
        "hosts": "all",
        "connection": "local",
        "gather_facts": False,
        "vars_files": [str(ROLE / "defaults/main.yml"), str(ROLE / "vars/main.yml")],
        "tasks": [{"ansible.builtin.include_tasks": str(ROLE / "tasks/admin_certificate.yml")}],
    }
    (tmp_path / "play.json").write_text(json.dumps([play]))
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {name: {} for name in NAMES}}}))
    values = {
        "ansible_python_interpreter": sys.executable,
        "vipu_server_as_user": [],
        "vipu_server_program": str(program),
        "vipu_server_folder": f"{tmp_path}/{{{{ inventory_hostname }}}}",
        "vipu_server_host": "127.0.0.1",
        "vipu_server_store": str(location),
        "vipu_server_controllers": list(NAMES),
        "vipu_server_certificates": {"ca": "ca.crt"},
    }
    files = ("-i", tmp_path / "hosts.json", "-e", json.dumps(values), tmp_path / "play.json")
    done = run("ansible-playbook", *files)
    assert done.returncode == 0, done.stdout
    [admin] = [record for record in content.read(location).records if isinstance(record, User)]
    expected = {fingerprint(tmp_path / name / "certs-external") for name in NAMES}
    assert {each.key for each in admin.certificates} == expected | {fingerprint(former)}
    assert not [name for name in NAMES if (tmp_path / name / "certs-replaced").is_symlink()]
