# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of desired files with host_files_info, where the builtin modules decide in doubt, and marks of files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.plugin_utils.host_files import (
    DesiredFile,
    create_marks,
    mark,
    remove_marks,
)

OWNERS = {"owner": "root", "uid": 0, "group": "ipuuser", "gid": 1004}
FILE = {"kind": "file", "mode": "0640", "checksum": "abc", **OWNERS}
FOLDER = {"kind": "directory", "mode": "0750", **OWNERS}


def desired(**given: Any) -> DesiredFile:
    return DesiredFile(
        **{"path": "/etc/a", "owner": "root", "group": "ipuuser", "mode": "0640", "checksum": "abc", **given}
    )


def test_equal_files_match() -> None:
    assert desired().matches(FILE)
    assert desired(mode="640").matches(FILE), "the leading zero is optional"
    assert desired(mode="0750", checksum=None).matches(FOLDER)
    assert desired(owner="0", group="1004").matches(FILE)


@pytest.mark.parametrize(
    "other",
    [
        None,
        {**FILE, "checksum": "abd"},
        {**FILE, "mode": "4640"},
        {**FILE, "mode": "0600"},
        {**FILE, "owner": "daemon", "uid": 1},
        {**FILE, "group": "", "gid": 1005},
        {**FILE, "kind": "link"},  # even to a matching file
        FOLDER,
    ],
)
def test_different_files_do_not_match(other: dict[str, Any] | None) -> None:
    assert not desired().matches(other)


def test_incomparable_files_do_not_match() -> None:
    assert not desired(mode="u=rw,g=r").matches(FILE)
    assert not desired(mode="0988").matches(FILE)
    assert not desired(mode="0750", checksum=None).matches({**FILE, "mode": "0750"}), "a file instead of a folder"


def test_marks_of_any_path_are_created_and_removed(tmp_path: Path) -> None:
    paths = ["/etc/a", "/etc/it's $(odd) name", "/" + "ä" * 300]

    def shell(command: str) -> list[bool]:
        subprocess.run(["/bin/sh", "-c", command], env={"HOME": str(tmp_path)}, cwd=tmp_path, check=True)
        return [Path(mark(path).replace("~", str(tmp_path))).exists() for path in paths]

    assert shell(create_marks(paths[:2])) == [True, True, False]
    assert shell(create_marks(paths)) == [True] * 3
    assert shell(remove_marks(paths[1:])) == [True, False, False]
    assert shell(remove_marks(paths)) == [False] * 3
