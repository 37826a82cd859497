# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files are as they are wanted: when in doubt, Ansible's own actions look."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.plugin_utils.host_files import Wanted, question

OWNERS = {"pw_name": "root", "uid": 0, "gr_name": "ipuuser", "gid": 1004}
FILE = {"isreg": True, "isdir": False, "mode": "0640", "checksum": "abc", **OWNERS}
FOLDER = {"isreg": False, "isdir": True, "mode": "0750", **OWNERS}


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
        {**FILE, "pw_name": "daemon"},
        {**FILE, "gr_name": ""},
        {**FILE, "isreg": False},  # a link to what would do, for one
        FOLDER,
    ],
)
def test_anything_else_is_not(other: dict[str, Any] | None) -> None:
    assert not wanted().is_there(other)


def test_neither_is_what_cannot_be_told() -> None:
    assert not wanted(mode="u=rw,g=r").is_there(FILE)
    assert not wanted(mode="0750", checksum=None).is_there({**FILE, "mode": "0750"}), "a file where a folder is wanted"


def test_one_question_is_for_all_paths_and_few_others() -> None:
    asked = question(["/etc/a/b.conf", "/etc/a/c", "/srv/[x]*?", "/srv/c"])
    assert asked["paths"] == ["/etc/a", "/srv"]
    names = ["b.conf", "c", "[x]*?", "bxconf", "x", "[x]ab"]
    matched = [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in asked["patterns"])]
    assert matched == ["b.conf", "c", "[x]*?"]
