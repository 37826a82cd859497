# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the module vipu_ipuof_config."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.ipuof_task import VIPU_IPUOF_CONFIG

from tests.integration.vipu_servers import InProcess, InstantLife, partition, pod, wait_active

Perform = Callable[..., dict[str, Any]]


@pytest.fixture
def perform(vipu_server: Callable[..., InProcess]) -> Perform:
    """Run the task on a controller with a partition of one GCD and one of two."""
    server = vipu_server(life=InstantLife)
    pod(server, machines=2)
    for request in (partition("vision", 4), partition("split", 4, num_gcds=2)):
        server.user.CreatePartition(request)
        wait_active(server, request.requirements.id)
    host, port = server.address.rsplit(":", 1)

    def run(check_mode: bool = False, **options: Any) -> dict[str, Any]:
        given = {"api_host": host, "api_port": int(port), **options}
        checked = ArgumentSpecValidator(VIPU_IPUOF_CONFIG.argument_spec).validate(given)
        assert not checked.error_messages
        return VIPU_IPUOF_CONFIG.perform(checked.validated_parameters, check_mode, diff=True)

    return run


def mode(path: Path) -> int:
    """The permissions of a file."""
    return path.stat().st_mode & 0o777


def test_a_file_is_written_once(perform: Perform, tmp_path: Path) -> None:
    dest = tmp_path / "conf.d" / "vision.conf"
    predicted = perform(check_mode=True, id="vision", dest=str(dest))
    assert not dest.parent.exists()
    done = perform(id="vision", dest=str(dest))
    assert predicted == done
    assert (done["changed"], done["dest"], done["created_folder"]) == (True, str(dest), str(dest.parent))
    assert done["diff"] == {
        "before_header": f"{dest} (absent)",
        "after_header": f"{dest} (mode 0600)",
        "before": "",
        "after": dest.read_text(),
    }
    config = json.loads(dest.read_text())
    assert [device["device_id"] for device in config["devices"]] == [3, 2, 1, 0]
    assert config["attributes"]["GCD Id"] == "0"
    assert (mode(dest), mode(dest.parent)) == (0o600, 0o700)
    inode = dest.stat().st_ino
    again = perform(id="vision", dest=str(dest))
    assert (again["changed"], dest.stat().st_ino, "created_folder" in again) == (False, inode, False)
    assert [path.name for path in dest.parent.iterdir()] == ["vision.conf"]


def test_content_and_mode_are_restored(perform: Perform, tmp_path: Path) -> None:
    dest = tmp_path / "vision.conf"
    perform(id="vision", dest=str(dest))
    written = dest.read_text()
    dest.chmod(0o644)
    drifted = perform(check_mode=True, id="vision", dest=str(dest))
    assert (drifted["changed"], mode(dest)) == (True, 0o644)
    assert drifted["diff"]["before_header"].endswith("(mode 0644)")
    assert perform(id="vision", dest=str(dest))["changed"]
    assert mode(dest) == 0o600
    dest.write_bytes(b"\xff not what it was")
    assert perform(id="vision", dest=str(dest))["changed"]
    assert dest.read_text() == written


@pytest.mark.parametrize("given", ["0644", "644", 0o644])
def test_mode_for_other_readers(perform: Perform, tmp_path: Path, given: Any) -> None:
    dest = tmp_path / "ipuof.conf.d" / "vision.conf"
    assert perform(id="vision", dest=str(dest), mode=given)["changed"]
    assert (mode(dest), mode(dest.parent)) == (0o644, 0o755)
    assert not perform(id="vision", dest=str(dest), mode=given)["changed"]


def test_files_in_a_folder_have_the_names_of_the_command_line(perform: Perform, tmp_path: Path) -> None:
    for options in ({"id": "vision"}, {"id": "vision", "gcd": 0}, {"id": "split", "gcd": 0}, {"id": "split", "gcd": 1}):
        perform(dest=str(tmp_path), **options)
    names = {"vision_ipuof.conf", "split_gcd0_ipuof.conf", "split_gcd1_ipuof.conf"}
    assert {path.name for path in tmp_path.glob("*.conf")} == names
    ids = [json.loads((tmp_path / f"split_gcd{n}_ipuof.conf").read_text())["attributes"]["GCD Id"] for n in (0, 1)]
    assert ids == ["0", "1"]
    for options in ({"id": "vision", "gcd": 0}, {"id": "split", "gcd": 0}, {"id": "split", "gcd": 1}):
        assert perform(dest=str(tmp_path), state="absent", **options)["changed"]
        assert not perform(dest=str(tmp_path), state="absent", **options)["changed"]
    assert not list(tmp_path.glob("*.conf"))


def test_absent_does_not_contact_the_controller(perform: Perform, tmp_path: Path) -> None:
    dest = tmp_path / "gone.conf"
    dest.write_text("old")
    options = {"id": "nonesuch", "dest": str(dest), "state": "absent", "api_port": 1}
    predicted = perform(check_mode=True, **options)
    assert dest.exists()
    assert perform(**options) == predicted
    assert (predicted["changed"], predicted["diff"]["before"], predicted["diff"]["after"]) == (True, "old", "")
    assert not dest.exists()
    assert not perform(**options)["changed"]


def test_check_mode_accepts_a_missing_partition(perform: Perform, tmp_path: Path) -> None:
    dest = str(tmp_path / "new.conf")
    assert perform(check_mode=True, id="new", dest=dest) == {"changed": True, "dest": dest}
    rejected = perform(id="new", dest=dest)
    assert rejected["failed"]
    assert "'new'" in rejected["msg"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"id": "split"},
            "Cannot write the IPUoF configuration of partition 'split': it has 2 GCDs. Select one with gcd.",
        ),
        (
            {"id": "split", "gcd": 2},
            "Cannot write the IPUoF configuration of partition 'split': it has no GCD 2. Its GCDs are 0 to 1.",
        ),
        (
            {"id": "split", "gcd": -1},
            "Cannot write the IPUoF configuration of partition 'split': it has no GCD -1. Its GCDs are 0 to 1.",
        ),
        (
            {"id": "vision", "mode": "u=rw"},
            "Cannot write the IPUoF configuration: mode u=rw is invalid. Use octal digits in quotes, such as '0600'.",
        ),
        (
            {"id": "vision", "mode": 1000},
            "Cannot write the IPUoF configuration: mode 1000 is invalid. Use octal digits in quotes, such as '0600'.",
        ),
    ],
)
def test_invalid_options_are_rejected(perform: Perform, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    result = perform(dest=str(tmp_path / "file.conf"), **options)
    assert (result["failed"], result["changed"], result["msg"]) == (True, False, message)
    assert not list(tmp_path.glob("file.conf*"))


def test_paths_that_cannot_be_written(perform: Perform, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = perform(id="vision", dest=str(tmp_path / "file" / "vision.conf"))
    assert result["failed"]
    assert "Cannot read" in result["msg"] and "not a directory" in result["msg"]
    for check_mode in (True, False):
        result = perform(check_mode, id="vision", dest=str(tmp_path / "none" / "conf.d" / "vision.conf"))
        assert result["msg"] == (
            f"Cannot write file '{tmp_path}/none/conf.d/vision.conf': folder '{tmp_path}/none' does not exist. "
            "Create it, or correct dest."
        )
        assert (result["failed"], (tmp_path / "none").exists()) == (True, False)
    result = perform(id="vision", dest="/proc/vision.conf")
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"].startswith("Cannot write file '/proc/vision.conf': ")
