# SPDX-License-Identifier: GPL-3.0-or-later
"""Network namespaces with loopback only: connections to other hosts are impossible, and the kernel counts them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ENTER = """
import json, socket
from openipu.process import network_namespace
entered = network_namespace.enter()
"""
CONNECT = """
def connect(kind, host):
    with socket.socket(socket.AF_INET, kind) as client:
        try:
            client.connect((host, 9))
        except OSError as error:
            return error.strerror
before = network_namespace.unroutable()
errors = [connect(kind, "192.0.2.1") for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
connect(socket.SOCK_STREAM, "127.0.0.1")
print(json.dumps([entered, network_namespace.has_loopback_only(), errors, network_namespace.unroutable() - before]))
"""


def run(program: str) -> list[object]:
    """Return the JSON that a Python program prints."""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    found: list[object] = json.loads(done.stdout)
    return found


def test_connections_to_other_hosts_are_impossible_and_counted() -> None:
    entered, loopback_only, errors, count = run(ENTER + CONNECT)
    if not entered:
        pytest.skip("network namespaces are not available")
    assert loopback_only
    assert errors == 2 * ["Network is unreachable"]
    assert count == 2


def test_a_process_with_several_threads_does_not_move() -> None:
    thread = "import threading; end = threading.Event(); threading.Thread(target=end.wait).start()\n"
    after = "print(json.dumps([entered])); end.set()\n"
    assert run(thread + ENTER + after) == [False]


def test_other_interfaces_are_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    from openipu.process import network_namespace

    flags = {"lo": 0x9, "tunl0": 0x0, "eth0": 0x3}
    monkeypatch.setattr(network_namespace, "_flags", lambda _control, name: flags[name])
    for names, alone in ((["lo", "tunl0"], True), (["lo", "tunl0", "eth0"], False)):
        monkeypatch.setattr(network_namespace.socket, "if_nameindex", lambda names=names: list(enumerate(names, 1)))
        assert network_namespace.has_loopback_only() == alone
