# SPDX-License-Identifier: GPL-3.0-or-later
"""Rollback of network changes: one that does not end, and one that the timer has started."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.openipu.pod.plugins.action.poplar_network import ActionModule
from ansible_collections.openipu.pod.plugins.module_utils.host import network_task, rollback
from ansible_collections.openipu.pod.plugins.module_utils.host.backends import BACKENDS
from ansible_collections.openipu.pod.plugins.module_utils.host.commands import CommandError, Host
from ansible_collections.openipu.pod.plugins.module_utils.host.network import FILE, desired_bond
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError, plan
from ansible_collections.openipu.pod.plugins.plugin_utils.action import TaskAction


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


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rollback, "_POLL_SECONDS", 0)
    monkeypatch.setattr(rollback, "FOLDER", tmp_path / "rollback")
    monkeypatch.setattr(rollback, "_SCRIPT", tmp_path / "rollback" / "rollback")


def test_the_wait_for_a_running_rollback_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollback, "_ROLLBACK_SECONDS", 0)
    with pytest.raises(CommandError, match="it did not finish within 0 s"):
        rollback.run_now(StuckHost(started=True))


def test_a_new_change_waits_for_a_running_rollback(tmp_path: Path) -> None:
    host = BusyHost()
    rollback.FOLDER.mkdir()
    rollback.schedule(host, [str(tmp_path / "file")], [], [], [], 120)
    assert host.queries == 3
    assert [command[0] for command in host.commands] == ["systemd-run"]
    assert rollback._SCRIPT.exists(), "the end of the first rollback deleted the files of the second one"


def test_a_rollback_that_has_started_cannot_be_confirmed() -> None:
    rollback.FOLDER.mkdir()
    with pytest.raises(UserError, match="the host has already rolled it back"):
        rollback.cancel(BusyHost())
    assert rollback.FOLDER.exists(), "the running rollback needs these files"


@pytest.mark.parametrize("in_time", [True, False])
def test_a_change_is_only_successful_when_it_was_confirmed_in_time(
    monkeypatch: pytest.MonkeyPatch, in_time: bool
) -> None:
    results = [{"changed": True, "name": "bond0"}, {"changed": in_time}]
    monkeypatch.setattr(TaskAction, "run", lambda *args: results.pop(0))
    action = ActionModule.__new__(ActionModule)
    action._task = SimpleNamespace(args={}, check_mode=False, async_val=0)
    result = action.run()
    assert action._task.args == {"state": "confirmed"}
    assert result["changed"]
    assert result["name"] == "bond0"
    assert result.get("msg") == (None if in_time else rollback.TOO_LATE)
    assert result.get("failed", False) is not in_time


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
