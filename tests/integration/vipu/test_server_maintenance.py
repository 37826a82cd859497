# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of a controller: health, readiness, options."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from openipu.process.notify import notify
from openipu.vipu.tls import issue
from tests.integration.vipu.maintenance_support import DAY, Start
from tests.integration.vipu_servers import (
    command,
    environment,
    run,
)


def port_and_agents(port: str, certs: Path) -> list[str]:
    files = (("ca", "ca.crt"), ("certificate", "controller.crt"), ("key", "controller.key"))
    return ["--port", port, *(f"--agent-tls-{option}={certs / 'controller' / name}" for option, name in files)]


def test_health(vipu_process: Start, certs: Path) -> None:
    server = vipu_process()
    port = server.address.split(":")[1]
    healthy = run("health", "--port", port)
    assert (healthy.returncode, healthy.stdout) == (0, f"vipu-server 0.1.0 serves on 127.0.0.1:{port}\n")
    by_wildcard = run("health", "--port", port, "--host", "0.0.0.0")
    assert (by_wildcard.returncode, by_wildcard.stdout) == (0, f"vipu-server 0.1.0 serves on localhost:{port}\n")
    expired = port_and_agents(port, certs.parent / "expired")
    issue.create(certs.parent / "expired", [], -DAY)
    assert run("health", *expired).stderr.startswith("Error OPU614: Cannot use certificate ")
    assert "Certificates are valid until 20" in run("health", *port_and_agents(port, certs)).stdout
    with_tls = run("health", "--port", port, "--secure", "--certs", str(certs))
    assert with_tls.returncode == 1
    assert with_tls.stderr.endswith(". See its log, or omit --secure if the controller runs without it.\n")
    server.stop()
    stopped = run("health", "--port", port, "--wait", "0.5")
    assert stopped.returncode == 1
    message = f"Error OPU616: Cannot use the controller on 127.0.0.1:{port}: it does not serve after 0.5 s: "
    reason = "Failed to connect to remote host: Connection refused"
    remedy = "Start it, see its log if it has ended, or correct --host and --port"
    assert stopped.stderr == f"{message}{reason}. {remedy}.\n"
    assert "it does not serve: Failed to connect" in run("health", "--port", port).stderr


def test_the_service_manager_is_notified(tmp_path: Path) -> None:
    run("--init", "--database", str(tmp_path / "vipu-server.db"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(20)
        process = subprocess.Popen(
            command("--database", str(tmp_path / "vipu-server.db"), "--port", "0"),
            env={**environment(), "NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.DEVNULL,
        )
        try:
            assert manager.recv(100) == b"READY=1"
            process.terminate()
            assert manager.recv(100) == b"STOPPING=1"
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()


def test_a_missing_service_manager_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "missing"))
    notify("READY=1")


def test_options_of_commands_come_from_the_same_environment(tmp_path: Path) -> None:
    database = tmp_path / "vipu-server.db"
    run("--init", "--database", str(database))
    done = subprocess.run(
        command("check"), env={**environment(), "VIPU_SERVER_DATABASE": str(database)}, capture_output=True, text=True
    )
    assert done.stdout.startswith(f"Sound: {database} (0 agents"), done.stderr


def test_an_unknown_command_is_rejected() -> None:
    rejected = run("bakup")
    assert rejected.returncode == 2
    assert "No such command 'bakup'" in rejected.stderr
