# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of the roles `vipu_server` and `vipu_client` for certificates."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT

ROLES = ROOT / "roles"


def evaluate(folder: Path, role: str, expression: str, *cases: dict[str, Any]) -> list[Any]:
    """Return the value of an expression with the variables of a role and those of each case."""
    outputs = [folder / f"value{number}.json" for number in range(len(cases))]
    copies = [{"dest": str(output), "content": "{{ value | to_json }}", "mode": "0600"} for output in outputs]
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars_files": [str(ROLES / role / name / "main.yml") for name in ("defaults", "vars")],
        "vars": {"value": expression},
        "tasks": [{"ansible.builtin.copy": copy, "vars": case} for copy, case in zip(copies, cases, strict=True)],
    }
    book = folder / "play.yml"
    book.write_text(yaml.safe_dump([play]))
    program = Path(sys.executable).with_name("ansible-playbook")
    given = {"ansible_python_interpreter": sys.executable}
    command = [program, "-i", "localhost,", "-c", "local", "-e", json.dumps(given), book]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    return [json.loads(output.read_text()) for output in outputs]


def test_the_environment_of_the_health_check(tmp_path: Path) -> None:
    """Files for agents, and certificates of users as the default where they can be issued."""
    (block,) = yaml.safe_load((ROLES / "vipu_server/tasks/start.yml").read_text())
    (task,) = [each for each in block["block"] if "health" in str(each.get("ansible.builtin.command"))]
    files = {name: f"/pki/{name}" for name in ("ca", "certificate", "key")}
    external = dict.fromkeys(("ca", "certificate", "key", "client_certificate", "client_key"), "/pki")
    cases = ({}, {"vipu_server_agent_tls": files}, {"vipu_server_certificates": external})
    default, with_files, with_certificates = evaluate(tmp_path, "vipu_server", task["environment"], *cases)
    names = {f"VIPU_SERVER_AGENT_TLS_{name.upper()}" for name in files}
    assert names <= set(with_files)
    assert not names & set(default)
    name = "VIPU_SERVER_CLIENT_CERTIFICATES"
    assert (default[name], with_certificates[name]) == ("user", "shared")


def test_certificates_in_the_file_of_a_user(tmp_path: Path) -> None:
    """Those of the file are copied if they exist. Those in the variables have precedence."""
    for name in ("a.crt", "a.key"):
        (tmp_path / name).touch()
    for user in ("a", "b"):
        paths = {"client-cert": f"{tmp_path}/{user}.crt", "client-key": f"{tmp_path}/{user}.key"}
        lines = [f"{name}={json.dumps(path)}" for name, path in {"api-user-id": user, **paths}.items()]
        (tmp_path / f"{user}.hcl").write_text("\n".join(lines))
    users: list[dict[str, str]] = [
        {"name": "own", "config": f"{tmp_path}/a.hcl"},
        {"name": "lost", "config": f"{tmp_path}/b.hcl"},
        {"name": "given", "config": f"{tmp_path}/a.hcl", "client_cert": "/pki/c.crt", "client_key": "/pki/c.key"},
        {"name": "plain", "access_key": "k"},
    ]
    expression = "{{ {'files': vipu_client_certificates, 'desired': vipu_client_desired_user_files} }}"
    (found,) = evaluate(tmp_path, "vipu_client", expression, {"vipu_client_users": users})
    assert found["files"] == {
        "own": {"cert": f"{tmp_path}/a.crt", "key": f"{tmp_path}/a.key"},
        "lost": {"cert": "", "key": ""},
        "given": {"cert": "/pki/c.crt", "key": "/pki/c.key"},
        "plain": {"cert": "", "key": ""},
    }
    assert sorted(path.rpartition("/")[2] for path in found["desired"]) == sorted(
        ["own.hcl", "lost.hcl", "given.hcl", "plain.hcl", "own.crt", "given.crt", "own.key", "given.key"]
    )


def test_the_administrator_keeps_a_certificate_of_its_own(tmp_path: Path) -> None:
    """Each run writes the file again. A certificate that the administrator created next to it has precedence."""
    folders = {name: tmp_path / name for name in ("client", "admin")}
    for folder in folders.values():
        folder.mkdir()
    (folders["admin"] / "admin.crt").touch()
    key = {"content": b64encode(b'api-user-id="admin"\nclient-cert="/var/lib/x"\n').decode()}
    template = f"{ROLES}/vipu_server/templates/admin.vipu-cli.hcl.j2"
    found = evaluate(
        tmp_path,
        "vipu_server",
        f"{{{{ lookup('ansible.builtin.template', '{template}') }}}}",
        *({"vipu_server_access_key": key, "vipu_server_login_path": str(folder)} for folder in folders.values()),
    )
    for (name, folder), text in zip(folders.items(), found, strict=True):
        paths = {"ca-path": "ca.crt", "client-cert": f"{name}.crt", "client-key": f"{name}.key"}
        address = ['api-host="127.0.0.1"', "api-port=8092"]
        expected = ['api-user-id="admin"', *address, *(f'{option}="{folder}/{file}"' for option, file in paths.items())]
        assert text.splitlines() == expected
