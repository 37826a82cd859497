# SPDX-License-Identifier: GPL-3.0-or-later
"""``openipu-pod init`` writes files that are valid, and overwrites none."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from openipu.pod_files.cli.main import init, main
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


def test_racks_of_different_sizes_are_valid(tmp_path):
    done = program("init", tmp_path, "--racks", 3, "--machines", "16,8,20", "--servers", "0,3,1")
    assert done.exit_code == 0, done.output
    pod = load(str(tmp_path / "pod.yml"))
    assert [len(rack.machines) for rack in pod.racks] == [16, 8, 20]
    assert [[server.name for server in rack.servers] for rack in pod.racks] == [
        [],
        ["server1", "server2", "server3"],
        ["server4"],
    ]
    assert [allocation.size for allocation in pod.allocations] == [16, 8, 20]
    assert [len(rack.switches) for rack in pod.racks] == [2, 2, 4]
    assert pod.machines[16].name == "ipum17"
    assert (pod.controller_host, pod.partitions[0].size) == ("10.3.2.101", 16)


@pytest.mark.parametrize(
    ("options", "machines", "servers"),
    [
        (("--machines", "16,8"), [16, 8], [4, 4]),
        (("--servers", "2,0,1"), [16, 16, 16], [2, 0, 1]),
        (("--machines", "16, 8", "--servers", "1"), [16, 8], [1, 1]),
    ],
)
def test_a_list_sets_the_number_of_racks(tmp_path, options, machines, servers):
    done = program("init", tmp_path, *options)
    assert done.exit_code == 0, done.output
    pod = load(str(tmp_path / "pod.yml"))
    assert [len(rack.machines) for rack in pod.racks] == machines
    assert [len(rack.servers) for rack in pod.racks] == servers


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--racks", 1, "--machines", "16,8"), "'16,8': give one number, or set --racks 2."),
        (("--machines", "16,8", "--servers", "4,0,1"), "'16,8': give one number, or one for each of the 3 racks."),
        (("--machines", "16,"), "'16,': a number is missing: write one number, or a list such as 16,8."),
        (("--servers", ""), "'': a number is missing: write one number, or a list such as 16,8."),
        (("--racks", 3, "--machines", "16,8"), "'16,8': give one number, or one for each of the 3 racks."),
        (("--racks", 2, "--machines", "16,0"), "'0' is not a number from 1 to 32."),
        (("--racks", 2, "--servers", "4,x"), "'x' is not a number from 0 to 4."),
        (("--machines", "sixteen"), "'sixteen' is not a number from 1 to 32."),
        (("--racks", "two"), "'two' is not a number from 1 to 64."),
        (("--racks", 65), "'65' is not a number from 1 to 64."),
        (("--racks", 2, "--servers", "0"), "the controller needs a server: set at least one."),
    ],
)
def test_invalid_sizes_of_racks_are_rejected(tmp_path, options, message):
    done = program("init", tmp_path / "pod", *options)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "pod").exists()


def test_a_terminal_suggests_the_length_of_a_list(tmp_path, monkeypatch):
    for option in init.params[1:]:
        monkeypatch.setattr(option, "prompt", option.name)
    done = CliRunner().invoke(main, ["init", str(tmp_path), "--machines", "16,8"], input="\n\n\n")
    assert done.exit_code == 0, done.output
    assert "racks [2]:" in done.output
    assert len(load(str(tmp_path / "pod.yml")).racks) == 2


def test_a_terminal_asks_for_plain_values(tmp_path):
    ours, theirs = pty.openpty()
    try:
        os.write(ours, b"\n2\nmany\n4\n\n")
        done = subprocess.run(
            [sys.executable, "-m", "openipu.pod_files.cli.main", "init", tmp_path],
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0, done.stderr
    questions = done.stdout.partition("Wrote ")[0]
    assert questions.splitlines() == [
        "Name of the POD [pod1]: Number of racks [1]: IPU-Machines per rack [16]: "
        "Error: 'many' is not a number from 1 to 32.",
        "IPU-Machines per rack [16]: Servers per rack [4]: ",
    ]
    assert [len(rack.machines) for rack in load(str(tmp_path / "pod.yml")).racks] == [4, 4]


def list_inventory(folder: Path, inventory: str) -> subprocess.CompletedProcess[str]:
    """List an inventory with the settings in a folder."""
    environment = {name: value for name, value in os.environ.items() if name != "ANSIBLE_CONFIG"}
    command = [Path(sys.executable).parent / "ansible-inventory", "-i", inventory, "--list"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_ansible_fails_on_mistakes_in_the_folder(tmp_path):
    folder = tmp_path / "pod"
    done = program("init", folder)
    assert f", {folder}/ansible.cfg.\n" in done.output
    pod = folder / "pod.yml"
    pod.write_text(pod.read_text().replace("name: pod1", "nam: pod1"))
    ended = list_inventory(folder, "pod.yml")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "unknown key 'nam': did you mean 'name'?" in ended.stderr
    assert "Failed to parse" not in ended.stderr


def test_the_folder_may_be_the_inventory(tmp_path):
    program("init", tmp_path, "--machines", 1, "--servers", 1)
    names = (
        "notes.txt",
        "README.rst",
        "site.retry",
        "rack-report.html",
        "pod.yml.orig",
        "vault.yml",
        "machines.csv.old",
    )
    for name in names:
        (tmp_path / name).write_text("no inventory\n")
    file, folder = list_inventory(tmp_path, "pod.yml"), list_inventory(tmp_path, ".")
    assert (folder.returncode, folder.stderr) == (0, "")
    assert json.loads(folder.stdout) == json.loads(file.stdout)


def test_existing_settings_of_ansible_are_kept(tmp_path):
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")
    done = program("init", tmp_path)
    assert done.exit_code == 0, done.output
    assert "ansible.cfg" not in done.output
    assert (tmp_path / "ansible.cfg").read_text() == "[defaults]\n"
    assert (tmp_path / "pod.yml").exists()


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
