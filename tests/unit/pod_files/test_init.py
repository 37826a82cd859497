# SPDX-License-Identifier: GPL-3.0-or-later
"""``openipu-pod init`` writes files that are valid, and overwrites none."""

from __future__ import annotations

import pytest

from openipu.shared.pod.load import load
from tests.unit.pod_files.test_validate import program


@pytest.mark.parametrize(("racks", "machines", "servers"), [(1, 16, 4), (4, 16, 1), (2, 1, 2), (64, 32, 4)])
def test_the_files_are_valid(tmp_path, racks, machines, servers):
    folder = tmp_path / "new" / "pod"
    done = program("init", folder, "--racks", racks, "--machines", machines, "--servers", servers, "--name", "north")
    assert done.exit_code == 0, done.output
    pod = load(str(folder / "pod.yml"))
    assert (pod.name, len(pod.racks), len(pod.machines)) == ("north", racks, racks * machines)
    assert pod.controller_host == "10.3.1.101"
    assert program("validate", folder).exit_code == 0
    assert (folder / "pod.schema.json").read_text().startswith("{")
    assert (folder / "pod.yml").read_text().startswith("# yaml-language-server: $schema=pod.schema.json\n")


def test_existing_files_are_kept(tmp_path):
    (tmp_path / "machines.csv").write_text("mine\n")
    done = program("init", tmp_path)
    assert done.exit_code == 1
    assert "machines.csv: it exists. Name another folder. Nothing was changed." in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["machines.csv"]


@pytest.mark.parametrize(
    ("folder", "reason"), [("x" * 300, "File name too long"), ("loop", "levels of symbolic links")]
)
def test_an_impossible_folder_is_one_message(tmp_path, folder, reason):
    (tmp_path / "loop").symlink_to("loop")
    done = program("init", tmp_path / folder / "pod")
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    assert f"Cannot write {tmp_path / folder}" in done.output
    assert reason in done.output


def test_an_invalid_name_is_rejected(tmp_path):
    done = program("init", tmp_path / "pod", "--name", "a b")
    assert done.exit_code == 2
    assert "use 1 to 63 letters" in done.output
