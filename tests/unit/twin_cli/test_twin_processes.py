# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes by pid file, with real processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from openipu.twin.processes import Endpoint, ProcessError, Service, check_free, private_folder

WAIT = "import signal; print('here', flush=True); signal.pause()"


@pytest.fixture
def service(tmp_path: Path):
    made = Service("The sleeper", tmp_path / "s.pid", tmp_path / "s.log", [sys.executable, "-c", WAIT])
    yield made
    made.stop()


def said(service: Service, word: str) -> bool:
    return service.log.exists() and word in service.log.read_text()


def test_a_process_is_started_found_again_and_ended(service):
    assert service.running() is None
    service.start()
    service.wait_ready(lambda: said(service, "here"), 20)
    again = Service(service.title, service.pid_file, service.log, [])
    process = again.running()
    assert process is not None
    assert os.getsid(process.pid) == process.pid  # in a session of its own: no Ctrl-C for it
    again.stop()
    assert again.running() is None
    assert not service.pid_file.exists()
    again.stop()  # ends nothing, and that is well


def test_one_that_ignores_the_polite_request_is_killed(service, monkeypatch):
    monkeypatch.setattr("openipu.twin.processes.STOP_SECONDS", 0.3)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True); signal.pause()"
    stubborn = Service(service.title, service.pid_file, service.log, [sys.executable, "-c", deaf])
    stubborn.start()
    stubborn.wait_ready(lambda: said(service, "here"), 20)
    stubborn.stop()
    assert stubborn.running() is None


def test_a_number_that_somebody_else_has_now_is_not_ours(service):
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
def test_a_pid_file_of_nonsense_is_nobody(service, content):
    service.pid_file.write_text(content)
    assert service.running() is None


def test_one_that_ends_at_once_is_told_with_its_last_words(service):
    ends = Service("The singer", service.pid_file, service.log, [sys.executable, "-c", "raise SystemExit('no voice')"])
    ends.start()
    with pytest.raises(ProcessError, match=r"The singer ended at once: no voice \(its log: .*s\.log\)"):
        ends.wait_ready(lambda: False, 20)


def test_one_that_never_answers_is_told(service):
    service.start()
    with pytest.raises(ProcessError, match="The sleeper did not answer within 0 s: look into"):
        service.wait_ready(lambda: False, 0.05)


def test_a_command_that_is_not_there(service):
    missing = Service("Nothing", service.pid_file, service.log, ["/nowhere/at/all"])
    with pytest.raises(ProcessError, match="Cannot start /nowhere/at/all: No such file or directory"):
        missing.start()


def test_a_busy_port_is_told_with_its_owner():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host, port = taken.getsockname()
        me = psutil.Process()
        sentence = rf"Port {port} on {host} is taken by process {me.pid} \({me.name()}\): stop it"
        with pytest.raises(ProcessError, match=sentence):
            check_free([Endpoint(host, port)])
    check_free([Endpoint(host, port)])


def test_an_address_of_another_machine_is_told():
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
    with pytest.raises(ProcessError, match="Cannot make"):
        private_folder(tmp_path / "file" / "below")
