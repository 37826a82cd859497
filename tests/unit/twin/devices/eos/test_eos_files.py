# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files and checkpoints of the EOS twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.flash import MAX_CHECKPOINTS, Flash
from tests.unit.twin.devices.eos.switch_lines import Console


def test_a_saved_configuration_replaces_the_running_one() -> None:
    console = Console()
    console.type("copy running-config flash:before")
    console.configure("hostname tor9", "vlan 11")
    console.type("configure replace flash:before")
    assert "hostname tor1" in console.switch.running.lines()
    assert "vlan 11" not in console.switch.running.lines()


def test_the_startup_configuration_is_copied() -> None:
    console = Console()
    console.configure("hostname tor9")
    console.type("copy startup-config flash:rollback-0")
    console.type("configure replace flash:rollback-0")
    assert console.switch.hostname == "tor1"


def test_checkpoints() -> None:
    console = Console()
    console.type("configure checkpoint save before")
    console.type("configure checkpoint save")
    console.configure("hostname tor9")
    console.type("configure checkpoint restore before")
    assert console.switch.hostname == "tor1"
    assert list(console.switch.flash.checkpoints) == ["before", "ckp-20231114-0"]
    for number in range(MAX_CHECKPOINTS):
        console.type(f"configure checkpoint save c{number}")
    assert "before" not in console.switch.flash.checkpoints
    assert len(console.switch.flash.checkpoints) == MAX_CHECKPOINTS


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("configure replace flash:none", 1000, "No such file"),
        ("configure checkpoint restore none", 1000, "does not exist"),
        ("copy running-config flash:../x", 1002, "Invalid input"),
        ("copy running-config scp:host/x", 1002, "Invalid input"),
        ("copy nothing flash:x", 1002, "Invalid input"),
    ],
)
def test_invalid_files(command: str, code: int, text: str) -> None:
    console = Console()
    before = console.switch.running.lines()
    with pytest.raises(CliError, match=text) as rejected:
        console.type(command)
    assert rejected.value.code == code
    assert console.switch.running.lines() == before


def test_files_survive_a_restart(tmp_path: Path) -> None:
    Flash(tmp_path / "flash").write("flash:rollback-0", "hostname tor1\n")
    assert Flash(tmp_path / "flash").read("flash:rollback-0") == "hostname tor1\n"


def test_a_full_flash() -> None:
    flash = Flash()
    with pytest.raises(CliError, match="No space left"):
        for number in range(1000):
            flash.write(f"flash:file{number}", "")
