# SPDX-License-Identifier: GPL-3.0-or-later
"""Rollback of network changes that does not end."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.host import network_task, rollback
from ansible_collections.openipu.pod.plugins.module_utils.host.backends import BACKENDS
from ansible_collections.openipu.pod.plugins.module_utils.host.commands import CommandError, Host
from ansible_collections.openipu.pod.plugins.module_utils.host.network import FILE, desired_bond
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import plan


class StuckHost(Host):
    """A host whose rollback service never ends."""

    def run(self, *command: str, timeout: float = 300) -> str:
        return ""

    def succeeds(self, *command: str) -> bool:
        return "is-active" in command


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rollback, "_ROLLBACK_SECONDS", 0)
    monkeypatch.setattr(rollback, "_POLL_SECONDS", 0)
    monkeypatch.setattr(rollback, "FOLDER", tmp_path / "rollback")
    monkeypatch.setattr(rollback, "_SCRIPT", tmp_path / "rollback" / "rollback")


def test_the_wait_for_a_running_rollback_ends() -> None:
    with pytest.raises(CommandError, match="it did not finish within 0 s"):
        rollback.run_now(StuckHost())


def test_a_failed_rollback_is_reported_with_its_cause() -> None:
    vlans = [{"id": 11, "addresses": []}]
    options = {"name": "bond0", "mode": "802.3ad", "lacp_rate": "fast", "hash_policy": "layer3+4", "mii_monitor": 100}
    bond = desired_bond({**options, "mtu": 9000, "vlans": vlans}, ["eth0", "eth1"])
    steps = plan(FILE, [{"path": "/dev/null/file", "content": ""}], [])
    (failed,) = network_task._Writer(StuckHost(), BACKENDS["networkd"], bond, 1, 1)(steps)
    assert failed.message.startswith("Cannot configure bond 'bond0': ")
    assert "The previous configuration was restored" not in failed.message
    assert "Cannot restore the previous configuration: command '" in failed.message
    assert failed.message.endswith("See journalctl -u openipu-network-rollback.")
