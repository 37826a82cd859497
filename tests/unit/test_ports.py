# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of test servers: no other test process gets a port that this one has chosen."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.ports import RANGE, Locks, Ports, free_port, unassigned

HOST, STREAM = "127.0.0.1", socket.SOCK_STREAM


def _take(folder: Path, ports: range, count: int) -> list[int]:
    chooser = Ports(ports, folder)
    return [chooser.take(HOST, STREAM) for _ in range(count)]


def test_processes_get_different_ports_that_nobody_listens_on_yet(tmp_path: Path) -> None:
    ports = range(RANGE.start, RANGE.start + 100)
    first = Ports(ports, tmp_path)
    own = [first.take(HOST, STREAM) for _ in range(30)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        others = pool.apply(_take, (tmp_path, ports, 30))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        forked = pool.apply(_take, (tmp_path, ports, 30))
    assert len({*own}) == len({*others}) == len({*forked}) == 30
    assert set(own).isdisjoint(others) and set(own).isdisjoint(forked)


def test_an_occupied_port_is_not_chosen(tmp_path: Path) -> None:
    with socket.socket() as listener:
        port = free_port()
        listener.bind((HOST, port))
        assert Ports(range(port, port + 1), tmp_path).take("127.0.0.2", STREAM) == port
        with pytest.raises(OSError, match=r"Cannot find a free port of 127\.0\.0\.1"):
            Ports(range(port, port + 1), tmp_path).take(HOST, STREAM)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (32768, 60999, range(10_000, 30_000)),
        (15_000, 60_999, range(10_000, 15_000)),
        (1_024, 20_000, range(20_001, 65_536)),
        (1_024, 65_535, range(10_000, 30_000)),  # no others are left
    ],
)
def test_ports_are_not_those_that_the_kernel_assigns(first: int, last: int, expected: range) -> None:
    assert unassigned(first, last) == expected


def test_ports_of_this_machine_are_not_assigned() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if RANGE.start > last or RANGE.stop <= first:
        assert not first <= free_port() <= last
    else:
        assert len(unassigned(first, last)) == 20_000  # the kernel assigns almost all ports


def test_sessions_with_other_temporary_folders_exclude_each_other(tmp_path: Path) -> None:
    port = free_port()
    program = f"from tests.ports import Locks; print(Locks('ports').take({port}))"
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        environment = {**os.environ, "TMPDIR": str(folder)}
        line = [sys.executable, "-c", program]
        done = subprocess.run(line, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout == "False\n"


def test_a_number_is_held_until_its_release(tmp_path: Path) -> None:
    locks = Locks("numbers", tmp_path)
    assert locks.take(7)
    assert not locks.take(7)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert not pool.apply(_take_number, (tmp_path,))
        locks.release(7)
        assert pool.apply(_take_number, (tmp_path,))


def _take_number(folder: Path) -> bool:
    return Locks("numbers", folder).take(7)


@pytest.mark.parametrize("folder", ["attack", "events", "ha", "integration", "playbooks", "pods"])
def test_controllers_of_tests_use_no_agents_of_the_twin(folder: str) -> None:
    """A controller takes over the agents that it registers. Those of ``make twin-up`` are in 127.2.0.0/16."""
    texts = {path: path.read_text() for path in (ROOT / "tests" / folder).rglob("*.py")}
    assert texts
    assert [str(path) for path, text in texts.items() if "127.2." in text] == []
