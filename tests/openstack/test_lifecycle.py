# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing the OpenStack up and down: what runs stays, what died comes back, and down leaves nothing.

A cloud of the test's own stands in a network namespace, where no address is taken.
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
from apart import TOOL, Apart

from openipu.twin.processes import ProcessError
from tools.openstack import infrastructure
from tools.openstack.part import render
from tools.openstack.site import CHECKOUT, PORTS, Secrets, Site

ADDRESS = "127.6.0.1"


def pids(state: Path) -> dict[str, int]:
    return {file.stem: json.loads(file.read_text())["pid"] for file in (state / "run").glob("*.json")}


def processes_of(state: Path) -> list[str]:
    """Command lines of the processes that have the folder in their arguments or stand in it."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd", "environ", "status"]):
        told = [*(process.info["cmdline"] or []), process.info["cwd"] or "", *(process.info["environ"] or {}).values()]
        if process.pid != os.getpid() and any(str(state) in one for one in told):
            found.append(" ".join(process.info["cmdline"] or [process.info["status"]]))
    return found


@pytest.mark.timeout(900)
def test_up_is_idempotent_heals_and_down_leaves_nothing(apart: Apart, tmp_path: Path) -> None:
    state = tmp_path / "cloud"
    try:
        done = apart.tool("up", "--network-only", "--state-dir", str(state))
        assert done.returncode == 0, done.stderr
        assert f"OS_CLIENT_CONFIG_FILE={state}/clouds.yaml" in done.stdout
        first = pids(state)
        assert set(first) >= {"mariadb", "rabbitmq", "keystone-api", "neutron-api", "neutron-rpc-server"}

        assert apart.tool("up", "--network-only", "--state-dir", str(state)).returncode == 0
        assert pids(state) == first

        died = {"neutron-api", "rabbitmq"}
        for name in died:
            os.kill(first[name], signal.SIGKILL)
        done = apart.tool("up", "--network-only", "--state-dir", str(state))
        assert done.returncode == 0, done.stderr
        changed = {name for name, pid in pids(state).items() if first[name] != pid}
        assert changed == died
        assert processes_of(state)
    finally:
        done = apart.tool("down", "--state-dir", str(state))
    assert (done.returncode, done.stdout) == (0, "OpenStack has ended and left nothing.\n"), done.stderr
    assert not state.exists()
    assert processes_of(state) == []
    listening = subprocess.run(apart.command("ss", "-Hltn"), capture_output=True, text=True, check=True)
    assert listening.stdout == ""
    again = apart.tool("down", "--state-dir", str(state))
    assert (again.returncode, again.stdout) == (0, "No OpenStack runs here.\n")


@pytest.mark.timeout(300)
def test_a_busy_port_is_told_with_its_holder(apart: Apart, tmp_path: Path) -> None:
    port = PORTS["mariadb"]
    program = (
        f"import socket, time; s = socket.create_server(('{ADDRESS}', {port})); print(1, flush=True); time.sleep(300)"
    )
    with subprocess.Popen(apart.command(sys.executable, "-c", program), stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            done = apart.tool("up", "--network-only", "--state-dir", str(tmp_path / "cloud"))
        finally:
            holder.kill()
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: Port {port} on {ADDRESS} is taken by process {holder.pid} (")
    assert done.stderr.endswith("): stop it, and run the same command again.\n")


def test_a_missing_package_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(infrastructure, "everywhere", lambda: {"PATH": str(tmp_path)})
    monkeypatch.setattr(infrastructure, "RABBITMQ", str(tmp_path / "rabbitmq-server"))
    with pytest.raises(ProcessError) as told:
        infrastructure.check_installed()
    assert str(told.value) == (
        "Not installed: mariadb-server rabbitmq-server. "
        "Install with: apt install --no-install-recommends mariadb-server rabbitmq-server"
    )


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.txt"
    precious.write_text("years of work")
    for arguments in (["down"], ["up", "--network-only"]):
        line = [*TOOL, *arguments, "--state-dir", str(tmp_path)]
        done = subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith(f"Error: {tmp_path} holds ")
    assert [precious] == list(tmp_path.iterdir())


def test_configuration_is_laid_out_as_oslo_reads_it() -> None:
    laid_out = render({"DEFAULT": {"debug": True, "workers": 1}, "pci": {"alias": ["one", "two"]}})
    assert laid_out == "[DEFAULT]\ndebug = True\nworkers = 1\n[pci]\nalias = one\nalias = two\n"


def test_secrets_are_for_the_owner_only(tmp_path: Path) -> None:
    made = Secrets.new()
    file = tmp_path / "secrets.json"
    made.write(file)
    assert file.stat().st_mode & 0o077 == 0
    assert Secrets.read(file) == made != Secrets.new()
    assert made.database in Site(tmp_path, made).database("nova")
