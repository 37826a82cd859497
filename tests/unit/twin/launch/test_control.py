# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of the rack process on its socket."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from openipu.twin.launch import launcher
from openipu.twin.launch.launcher import Twin, TwinError


def test_a_rack_that_does_not_respond_is_reported_with_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_CONTROL_SECONDS", 0.2)
    monkeypatch.setattr(Twin, "_running", lambda _twin, _service: None)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "control.sock"))
        silent.listen()
        with pytest.raises(TwinError) as caught:
            Twin(tmp_path).machines()
    assert str(caught.value) == (
        f"Cannot use the twin in {tmp_path}: the rack's agents did not respond within 0.2 s. See {tmp_path}/agents.log."
    )
