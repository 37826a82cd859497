# SPDX-License-Identifier: GPL-3.0-or-later
"""Stopping a twin removes the IPUoF files of its partitions, and no others."""

from __future__ import annotations

import json
from pathlib import Path

from openipu.shared.pod.load import load
from openipu.twin.launch import ipuof_files, rack_config
from openipu.twin.launch.generate import PodSize


def test_only_files_of_partitions_of_the_twin_are_removed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    rack = tmp_path / "agents.json"
    rack.write_text(json.dumps(rack_config.rack(load(str(PodSize(machines=2).write(tmp_path / "pod"))))))
    own, other = "127.5.1.2", "10.5.1.2"
    files = {
        "mine_ipuof.conf": [own],
        "large_gcd1_ipuof.conf": ["127.5.1.1", own],
        "real_ipuof.conf": [other],
        "both_ipuof.conf": [own, other],
        "empty_ipuof.conf": [],
        "notes.txt": [own],
    }
    folder = tmp_path / ".ipuof.conf.d"
    folder.mkdir()
    for name, addresses in files.items():
        (folder / name).write_text(json.dumps({"devices": [{"ip": address} for address in addresses]}))
    (folder / "text_ipuof.conf").write_text("no JSON")
    reported: list[str] = []
    ipuof_files.remove(rack, reported.append)
    left = {path.name for path in folder.iterdir()}
    assert left == {"real_ipuof.conf", "both_ipuof.conf", "empty_ipuof.conf", "notes.txt", "text_ipuof.conf"}
    assert [line.split(":")[0] for line in reported] == [
        f"Removed {folder / name}" for name in ("large_gcd1_ipuof.conf", "mine_ipuof.conf")
    ]


def test_a_user_without_a_folder_is_no_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    reported: list[str] = []
    ipuof_files.remove(tmp_path / "missing.json", reported.append)
    assert reported == []
