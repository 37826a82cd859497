# SPDX-License-Identifier: GPL-3.0-or-later
"""Background processes and their pid files, with real processes."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from openipu.process.background import Endpoint, ProcessError, Service, check_free, port_owner, private_folder

WAIT = "import signal; print('here', flush=True); signal.pause()"


@pytest.fixture
def service(tmp_path: Path):
    made = Service("the sleeper", tmp_path / "s.pid", tmp_path / "s.log", [sys.executable, "-c", WAIT])
    yield made
    made.stop()


def logged(service: Service, word: str) -> bool:
    return service.log.exists() and word in service.log.read_text()


def test_a_process_is_started_found_and_stopped(service):
    assert service.running() is None
    service.start()
    service.wait_ready(lambda: logged(service, "here"), 20)
    again = Service(service.title, service.pid_file, service.log, [])
    process = again.running()
    assert process is not None
    assert os.getsid(process.pid) == process.pid  # in its own session, so that Ctrl-C does not reach it
    again.stop()
    assert again.running() is None
    assert not service.pid_file.exists()
    again.stop()  # a second stop is no error


def test_a_wait_reports_its_progress(service, monkeypatch):
    monkeypatch.setattr("openipu.process.background.PROGRESS_SECONDS", 0.05)
    lines: list[str] = []
    service.start()
    service.wait_ready(lambda: len(lines) >= 2, 20, lines.append)
    assert [line.split() for line in lines] == [["0", "s", "Waiting", "for", "the", "sleeper"]] * 2


def test_a_process_that_ignores_sigterm_is_killed(service, monkeypatch):
    monkeypatch.setattr("openipu.process.background.STOP_SECONDS", 0.3)
    script = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True); signal.pause()"
    ignoring = Service(service.title, service.pid_file, service.log, [sys.executable, "-c", script])
    ignoring.start()
    ignoring.wait_ready(lambda: logged(service, "here"), 20)
    ignoring.stop()
    assert ignoring.running() is None


def test_a_reused_pid_is_not_stopped(service):
    with subprocess.Popen([sys.executable, "-c", WAIT], stdout=subprocess.PIPE) as other:
        service.pid_file.write_text(json.dumps({"pid": other.pid, "started": "another boot 1"}))
        assert service.running() is None
        service.stop()
        assert psutil.pid_exists(other.pid)
        assert other.poll() is None
        other.kill()


@pytest.mark.parametrize(
    "content", ["", "{}", "12", '{"pid": "x", "started": "y"}', '{"pid": 0, "started": null}', "[1]"]
)
def test_an_invalid_pid_file_is_ignored(service, content):
    service.pid_file.write_text(content)
    assert service.running() is None


def test_an_immediate_exit_is_reported_with_the_end_of_the_log(service):
    ends = Service("the singer", service.pid_file, service.log, [sys.executable, "-c", "raise SystemExit('no voice')"])
    ends.start()
    with pytest.raises(
        ProcessError, match=r"^Cannot start the singer: it exited immediately: no voice\. See .*s\.log\.$"
    ):
        ends.wait_ready(lambda: False, 20)


def test_a_process_that_never_responds_is_reported(service):
    service.start()
    with pytest.raises(ProcessError, match=r"^Cannot start the sleeper: no response within 0\.05 s\. See .*\.$"):
        service.wait_ready(lambda: False, 0.05)


def test_a_process_with_progress_may_take_longer(service):
    numbers = itertools.count(1)
    reached = [0]

    def progress() -> int:
        reached.append(next(numbers))
        return reached[-1]

    service.start()
    service.wait_ready(lambda: reached[-1] >= 6, 0.05, progress=progress)


def test_a_process_without_progress_is_reported(service):
    service.start()
    with pytest.raises(ProcessError, match=r"^Cannot start the sleeper: no progress within 0\.05 s\. See .*\.$"):
        service.wait_ready(lambda: False, 0.05, progress=lambda: 7)


def test_open_files_of_a_process_are_counted(service):
    script = f"import socket; kept = [socket.socket() for _ in range(40)]; {WAIT}"
    opening = Service(service.title, service.pid_file, service.log, [sys.executable, "-c", script])
    assert opening.open_files() == 0
    opening.start()
    opening.wait_ready(lambda: logged(service, "here"), 20)
    assert opening.open_files() >= 40
    opening.stop()
    assert opening.open_files() == 0


def test_a_missing_command_is_reported(service):
    missing = Service("Nothing", service.pid_file, service.log, ["/nowhere/at/all"])
    with pytest.raises(ProcessError, match="Cannot start /nowhere/at/all: No such file or directory"):
        missing.start()


def test_a_busy_port_is_reported_with_its_owner():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host, port = taken.getsockname()
        owner = psutil.Process()
        message = rf"^Cannot use {host}:{port}: process {owner.pid} \({owner.name()}\) listens there\. Stop it"
        with pytest.raises(ProcessError, match=message):
            check_free([Endpoint(host, port)])
    check_free([Endpoint(host, port)])


def test_the_owner_of_an_ipv6_socket_with_an_ipv4_address_is_found():
    with socket.create_server(("::ffff:127.0.0.1", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        assert port_owner("127.0.0.1", server.getsockname()[1]).startswith(f"process {os.getpid()} (")


def test_an_address_of_another_machine_is_reported():
    with pytest.raises(ProcessError, match=r"Cannot listen on 192\.0\.2\.1:80: Cannot assign requested address"):
        check_free([Endpoint("192.0.2.1", 80)])


def test_a_private_folder_is_private(tmp_path):
    folder = tmp_path / "a" / "b"
    assert private_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    assert not private_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(ProcessError, match="is not a folder"):
        private_folder(tmp_path / "file")
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(ProcessError, match="is not a folder"):
        private_folder(tmp_path / "link")
    with pytest.raises(ProcessError, match="Cannot create"):
        private_folder(tmp_path / "file" / "below")
