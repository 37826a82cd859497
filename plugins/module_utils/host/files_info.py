# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module host_files_info does."""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import stat
import typing as t

from ..reconcile import Object, SentenceError
from ..runner import Run, Task
from .commands import HOST, Host

_KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link"))
_CHUNK = 1 << 20


def _files(run: Run[Host]) -> Object:
    found = (_look(path) for path in dict.fromkeys(run.params["paths"]))
    return {"changed": False, "files": [item for item in found if item]}


def _look(path: str) -> Object | None:
    """What stands at a path, a link as such; None when nothing does. Raises SentenceError."""
    try:
        found = os.lstat(path)
        kind = next((name for matches, name in _KINDS if matches(found.st_mode)), "other")
        told = {
            "path": path,
            "kind": kind,
            "mode": "%04o" % stat.S_IMODE(found.st_mode),
            "owner": _name(lambda: pwd.getpwuid(found.st_uid).pw_name),
            "uid": found.st_uid,
            "group": _name(lambda: grp.getgrgid(found.st_gid).gr_name),
            "gid": found.st_gid,
        }
        return {**told, "checksum": _checksum(path)} if kind == "file" else told
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SentenceError("Cannot look at %s: %s." % (path, (error.strerror or "it failed").lower())) from None


def _name(ask: t.Callable[[], str]) -> str:
    try:
        return ask()
    except KeyError:
        return ""


def _checksum(path: str) -> str:
    """The SHA-1 of a file, which is what Ansible compares files by."""
    digest = hashlib.sha1()  # noqa: S324 - no secret hangs on it
    with open(path, "rb") as file:  # noqa: PTH123
        for chunk in iter(lambda: file.read(_CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


HOST_FILES_INFO: Task[t.Any] = Task(HOST, {"paths": {"type": "list", "elements": "str", "required": True}}, _files)
