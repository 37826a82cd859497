# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and stop of OpenStack: up keeps running processes and restarts dead ones, and down removes everything.

The test has its own cloud in a network namespace, where all addresses are free.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from openipu.process.background import ProcessError
from tests.openstack.network_namespace import TOOL, NetworkNamespace
from tools.openstack import infrastructure
from tools.openstack.component import render
from tools.openstack.site import CHECKOUT, PORTS, Secrets, Site

ADDRESS = "127.6.0.1"


def pids(state: Path) -> dict[str, int]:
    return {file.stem: json.loads(file.read_text())["pid"] for file in (state / "run").glob("*.json")}


def command_lines(state: Path) -> list[str]:
    """Return the command lines of processes with the folder in their arguments, environment or working directory."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd", "environ", "status"]):
        texts = [*(process.info["cmdline"] or []), process.info["cwd"] or "", *(process.info["environ"] or {}).values()]
        if process.pid != os.getpid() and any(str(state) in text for text in texts):
            found.append(" ".join(process.info["cmdline"] or [process.info["status"]]))
    return found


@pytest.mark.timeout(900)
def test_up_restarts_killed_processes_and_down_removes_all(namespace: NetworkNamespace, tmp_path: Path) -> None:
    state = tmp_path / "cloud"
    try:
        result = namespace.tool("up", "--network-only", "--state-dir", str(state))
        assert result.returncode == 0, result.stderr
        assert f"OS_CLIENT_CONFIG_FILE={state}/clouds.yaml" in result.stdout
        first = pids(state)
        assert set(first) >= {"mariadb", "rabbitmq", "keystone-api", "neutron-api", "neutron-rpc-server"}

        assert namespace.tool("up", "--network-only", "--state-dir", str(state)).returncode == 0
        assert pids(state) == first

        killed = {"neutron-api", "rabbitmq"}
        for name in killed:
            os.kill(first[name], signal.SIGKILL)
        result = namespace.tool("up", "--network-only", "--state-dir", str(state))
        assert result.returncode == 0, result.stderr
        changed = {name for name, pid in pids(state).items() if first[name] != pid}
        assert changed == killed
        assert command_lines(state)
    finally:
        result = namespace.tool("down", "--state-dir", str(state))
    assert (result.returncode, result.stdout) == (0, "OpenStack is stopped and its files are removed.\n"), result.stderr
    assert not state.exists()
    assert command_lines(state) == []
    sockets = subprocess.run(namespace.command("ss", "-Hltn"), capture_output=True, text=True, check=True)
    assert sockets.stdout == ""
    second = namespace.tool("down", "--state-dir", str(state))
    assert (second.returncode, second.stdout) == (0, "No OpenStack is running.\n")


@pytest.mark.timeout(300)
def test_the_error_for_a_busy_port_names_its_process(namespace: NetworkNamespace, tmp_path: Path) -> None:
    port = PORTS["mariadb"]
    program = (
        f"import socket, time; s = socket.create_server(('{ADDRESS}', {port})); print(1, flush=True); time.sleep(300)"
    )
    with subprocess.Popen(namespace.command(sys.executable, "-c", program), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            result = namespace.tool("up", "--network-only", "--state-dir", str(tmp_path / "cloud"))
        finally:
            process.kill()
    assert result.returncode == 1
    assert result.stderr.startswith(f"Error OPU803: Cannot use {ADDRESS}:{port}: process {process.pid} (")
    assert result.stderr.endswith(") listens there. Stop it, and run the same command again.\n")


def test_the_error_for_missing_packages_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(infrastructure, "base_environment", lambda: {"PATH": str(tmp_path)})
    monkeypatch.setattr(infrastructure, "RABBITMQ", str(tmp_path / "rabbitmq-server"))
    with pytest.raises(ProcessError) as failure:
        infrastructure.check_installed()
    assert str(failure.value) == (
        "Cannot start OpenStack: not installed: mariadb-server rabbitmq-server. "
        "Run: apt install --no-install-recommends mariadb-server rabbitmq-server"
    )


def test_foreign_folders_are_rejected_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "thesis.txt"
    file.write_text("years of work")
    for verb, arguments in (("remove", ["down"]), ("use", ["up", "--network-only"])):
        line = [*TOOL, *arguments, "--state-dir", str(tmp_path)]
        result = subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False)
        assert result.returncode == 1
        assert result.stderr.startswith(f"Error OPU803: Cannot {verb} {tmp_path}: it holds ")
    assert [file] == list(tmp_path.iterdir())


def test_configuration_is_rendered_in_the_format_of_oslo() -> None:
    rendered = render({"DEFAULT": {"debug": True, "workers": 1}, "pci": {"alias": ["one", "two"]}})
    assert rendered == "[DEFAULT]\ndebug = True\nworkers = 1\n[pci]\nalias = one\nalias = two\n"


def test_only_the_owner_can_read_secrets(tmp_path: Path) -> None:
    secrets = Secrets.generate()
    file = tmp_path / "secrets.json"
    secrets.write(file)
    assert file.stat().st_mode & 0o077 == 0
    assert Secrets.read(file) == secrets != Secrets.generate()
    assert secrets.database in Site(tmp_path, secrets).database_url("nova")
