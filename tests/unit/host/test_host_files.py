# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files are as they are wanted: when in doubt, Ansible's own modules look."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.plugin_utils.host_files import Wanted

OWNERS = {"owner": "root", "uid": 0, "group": "ipuuser", "gid": 1004}
FILE = {"kind": "file", "mode": "0640", "checksum": "abc", **OWNERS}
FOLDER = {"kind": "directory", "mode": "0750", **OWNERS}


def wanted(**given: Any) -> Wanted:
    return Wanted(**{"path": "/etc/a", "owner": "root", "group": "ipuuser", "mode": "0640", "checksum": "abc", **given})


def test_what_is_as_it_is_wanted_is_there() -> None:
    assert wanted().is_there(FILE)
    assert wanted(mode="640").is_there(FILE), "the leading zero says nothing"
    assert wanted(mode="0750", checksum=None).is_there(FOLDER)
    assert wanted(owner="0", group="1004").is_there(FILE)


@pytest.mark.parametrize(
    "other",
    [
        None,
        {**FILE, "checksum": "abd"},
        {**FILE, "mode": "4640"},
        {**FILE, "mode": "0600"},
        {**FILE, "owner": "daemon", "uid": 1},
        {**FILE, "group": "", "gid": 1005},
        {**FILE, "kind": "link"},  # and be it to what would do
        FOLDER,
    ],
)
def test_anything_else_is_not(other: dict[str, Any] | None) -> None:
    assert not wanted().is_there(other)


def test_neither_is_what_cannot_be_told() -> None:
    assert not wanted(mode="u=rw,g=r").is_there(FILE)
    assert not wanted(mode="0988").is_there(FILE)
    assert not wanted(mode="0750", checksum=None).is_there({**FILE, "mode": "0750"}), "a file where a folder is wanted"
