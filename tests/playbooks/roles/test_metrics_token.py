# SPDX-License-Identifier: GPL-3.0-or-later
"""Token for metrics: its creation on the control node, and the options of controller and agents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from openipu.vipu.metrics.access import Token
from tests import ROOT

ROLES = ROOT / "roles"


def play(folder: Path, tasks: list[dict[str, Any]], files: list[Path], *options: str, **variables: Any) -> str:
    book = folder / "play.yml"
    vars_files = [str(file) for file in files]
    book.write_text(
        yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "vars_files": vars_files, "tasks": tasks}])
    )
    given = json.dumps({"ansible_python_interpreter": sys.executable, **variables})
    program = Path(sys.executable).with_name("ansible-playbook")
    command = [program, "-i", "localhost,", "-c", "local", "-e", given, *options, book]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_a_token_is_created_once(tmp_path: Path) -> None:
    file = tmp_path / "new" / "metrics.token"
    include = {"name": "openipu.pod.openipu", "tasks_from": "metrics_token"}
    tasks = [{"ansible.builtin.include_role": include}]

    def run(*options: str) -> bool:
        output = play(tmp_path, tasks, [], "-vvv", "--diff", *options, openipu_metrics_token_file=str(file))
        assert not file.exists() or file.read_text() not in output
        return "changed=0 " not in output

    assert run("--check")
    assert not file.parent.exists()
    assert run()
    token = file.read_text()
    assert Token(file).accepts(f"Bearer {token}")
    assert not run()
    assert not run("--check")
    assert file.read_text() == token


def rendered(folder: Path, template: Path, files: list[Path], *cases: dict[str, Any]) -> list[str]:
    """Return a template of a role, rendered with the variables of each case."""
    names = [folder / str(number) for number in range(len(cases))]
    tasks = [
        {"ansible.builtin.template": {"src": str(template), "dest": str(name)}, "vars": case}
        for name, case in zip(names, cases, strict=True)
    ]
    play(folder, tasks, files)
    return [name.read_text() for name in names]


def test_agents_use_their_certificate_and_the_token(tmp_path: Path) -> None:
    role = ROLES / "virm_agent"
    agent = {"agent": {"name": "ag01", "host": "10.2.1.1"}}
    names = ("virm_agent_tls_ca", "virm_agent_tls_certificate", "virm_agent_tls_key")
    cases = [{**agent, **dict.fromkeys(names, "file.pem")}, {**agent, "virm_agent_insecure_network": True}]
    files = [role / "defaults/main.yml", role / "vars/main/agent.yml"]
    texts = rendered(tmp_path, role / "templates/agent.conf.j2", files, *cases)
    tls = " --metrics-tls-certificate /etc/virm-agent/tls/agent.crt --metrics-tls-key /etc/virm-agent/tls/agent.key "
    assert [tls in text for text in texts] == [True, False]
    for text in texts:
        assert " --metrics-token-file /etc/virm-agent/metrics.token " in f"{text.strip()} "


def test_the_controller_uses_its_certificate_and_the_token(tmp_path: Path) -> None:
    role = ROLES / "vipu_server"
    cases = [{"vipu_server_secure": secure, "vipu_server_tls_names": ["a", "b"]} for secure in (True, False)]
    files = [role / "defaults/main.yml", role / "vars/main.yml"]
    texts = rendered(tmp_path, role / "templates/vipu-server.env.j2", files, *cases)
    secure, plain = (dict(re.findall(r'(?m)^VIPU_SERVER_METRICS_(\w+)="(.*)"$', text)) for text in texts)
    expected = {"HOST": "127.0.0.1", "PORT": "2112", "NAME": "a b", "TOKEN_FILE": "/var/lib/vipu/metrics.token"}
    server = "/var/lib/vipu/certs/server/server"
    assert secure == {**expected, "TLS_CERTIFICATE": f"{server}.crt", "TLS_KEY": f"{server}.key"}
    assert plain == expected
