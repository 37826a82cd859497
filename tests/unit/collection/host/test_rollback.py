# SPDX-License-Identifier: GPL-3.0-or-later
"""Rollback of network changes: one that does not end, and one that the timer has started."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.host import network_task, rollback
from ansible_collections.openipu.pod.plugins.module_utils.host.backends import BACKENDS
from ansible_collections.openipu.pod.plugins.module_utils.host.commands import CommandError, Host
from ansible_collections.openipu.pod.plugins.module_utils.host.network import FILE, desired_bond
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError, plan
from ansible_collections.openipu.pod.plugins.module_utils.runner import Run


class StuckHost(Host):
    """A host whose rollback service starts at once and never ends."""

    def __init__(self, *, started: bool = False) -> None:
        self.started = started

    def run(self, *command: str, timeout: float = 300) -> str:
        self.started = self.started or command[0] == "systemd-run"
        return ""

    def succeeds(self, *command: str) -> bool:
        return self.started and "is-active" in command


class BusyHost(Host):
    """A host whose timer has started a rollback, which deletes the saved files at its end."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, ...]] = []
        self.queries = 0

    def run(self, *command: str, timeout: float = 300) -> str:
        self.commands.append(command)
        return ""

    def succeeds(self, *command: str) -> bool:
        if "is-active" not in command:
            return True
        self.queries += 1
        if self.queries == 3:
            shutil.rmtree(rollback.FOLDER)
        return self.queries < 3


class RollingBackHost(StuckHost):
    """A host that runs the script of a rollback."""

    def run(self, *command: str, timeout: float = 300) -> str:
        if command[0] == "/bin/sh":
            subprocess.run(command, check=True)
        return ""


class Compared(Exception):
    """Raised in the place of the comparison with the host."""


def confirmation(host: Host, check_mode: bool = False) -> Run[Host]:
    return Run({"state": "confirmed"}, check_mode, False, host)


def schedule_and_run(host: StuckHost, file: Path, *commands: str) -> None:
    """Change a file, and run the rollback as the timer does."""
    rollback.schedule(host, [str(file)], [], [], [tuple(command.split()) for command in commands], 120)
    file.write_text("after")
    subprocess.run(["/bin/sh", rollback._SCRIPT], check=not commands)
    assert file.read_text() == "before"
    host.started = False


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file in the place of the configuration."""
    file = tmp_path / "file"
    file.write_text("before")
    return file


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rollback, "_POLL_SECONDS", 0)
    monkeypatch.setattr(rollback, "FOLDER", tmp_path / "rollback")
    monkeypatch.setattr(rollback, "_SCRIPT", tmp_path / "rollback" / "rollback")
    monkeypatch.setattr(rollback, "_STARTED", tmp_path / "started")


def test_the_wait_for_a_running_rollback_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollback, "_ROLLBACK_SECONDS", 0)
    with pytest.raises(CommandError, match="it did not finish within 0 s"):
        rollback.run_now(StuckHost(started=True))


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_task_compares_after_the_end_of_a_running_rollback(monkeypatch: pytest.MonkeyPatch, check_mode: bool) -> None:
    host = BusyHost()
    rollback.FOLDER.mkdir()

    def compare(host: BusyHost) -> None:
        assert host.queries == 3
        assert not rollback.FOLDER.exists()
        raise Compared

    monkeypatch.setattr(network_task, "fetch_links", compare)
    with pytest.raises(Compared):
        network_task.POPLAR_NETWORK.run(Run({"state": "present", "backend": "networkd"}, check_mode, False, host))
    assert host.commands == []


def test_a_rollback_that_runs_cannot_be_confirmed() -> None:
    rollback.FOLDER.mkdir()
    with pytest.raises(UserError, match="the host has started to roll it back"):
        network_task.POPLAR_NETWORK.run(confirmation(BusyHost()))
    assert rollback.FOLDER.exists(), "the running rollback needs these files"


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_change_that_was_rolled_back_cannot_be_confirmed(file: Path, check_mode: bool) -> None:
    host = StuckHost()
    schedule_and_run(host, file)
    with pytest.raises(UserError, match="the host has started to roll it back"):
        network_task.POPLAR_NETWORK.run(confirmation(host, check_mode=check_mode))
    assert not rollback.settle(host, check_mode=False)
    assert network_task.POPLAR_NETWORK.run(confirmation(host, check_mode=check_mode)) == {"changed": False}


def test_a_rollback_that_a_reboot_interrupted_cannot_be_confirmed(file: Path) -> None:
    host = StuckHost()
    schedule_and_run(host, file, "exit 1")
    assert rollback.FOLDER.exists()
    with pytest.raises(UserError, match="the host has started to roll it back"):
        network_task.POPLAR_NETWORK.run(confirmation(host))
    assert rollback.FOLDER.exists()


def test_a_failed_task_leaves_nothing_to_confirm(file: Path) -> None:
    rollback.schedule(StuckHost(), [str(file)], [], [], [], 120)
    file.write_text("after")
    host = RollingBackHost()
    rollback.run_now(host)
    assert file.read_text() == "before"
    assert network_task.POPLAR_NETWORK.run(confirmation(host)) == {"changed": False}


def test_the_next_task_confirms_a_change(file: Path) -> None:
    rollback.schedule(StuckHost(), [str(file)], [], [], [], 120)
    host = StuckHost()
    assert network_task.POPLAR_NETWORK.run(confirmation(host, check_mode=True)) == {"changed": True}
    assert rollback.settle(host, check_mode=True)
    assert rollback.settle(host, check_mode=False)
    assert not rollback.settle(host, check_mode=False)


def test_a_failed_rollback_is_reported_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollback, "_ROLLBACK_SECONDS", 0)
    vlans = [{"id": 11, "addresses": []}]
    options = {"name": "bond0", "mode": "802.3ad", "lacp_rate": "fast", "hash_policy": "layer3+4", "mii_monitor": 100}
    bond = desired_bond({**options, "mtu": 9000, "vlans": vlans}, ["eth0", "eth1"])
    steps = plan(FILE, [{"path": "/dev/null/file", "content": ""}], [])
    (failed,) = network_task._Writer(StuckHost(), BACKENDS["networkd"], bond, 1, 1)(steps)
    assert failed.message.startswith("Cannot configure bond 'bond0': ")
    assert "The previous configuration was restored" not in failed.message
    assert "Cannot restore the previous configuration: command '" in failed.message
    assert failed.message.endswith("See journalctl -u openipu-network-rollback.")
