# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module host_files_info: read the attributes of files."""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import stat
import typing as t

from ..reconcile import Object, UserError
from ..runner import Run, Task
from .commands import HOST, Host

_KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link"))
_CHUNK = 1 << 20


def _host_files_info(run: Run[Host]) -> Object:
    found = (_attributes(path) for path in dict.fromkeys(run.params["paths"]))
    return {"changed": False, "files": [item for item in found if item]}


def _attributes(path: str) -> Object | None:
    """Return the attributes of a file, or None when it does not exist. Links are not followed. Raises UserError."""
    try:
        expanded = os.path.expanduser(path)  # noqa: PTH111
        found = os.lstat(expanded)
        kind = next((name for matches, name in _KINDS if matches(found.st_mode)), "other")
        attributes = {
            "path": path,
            "kind": kind,
            "mode": "%04o" % stat.S_IMODE(found.st_mode),
            "owner": _name(lambda: pwd.getpwuid(found.st_uid).pw_name),
            "uid": found.st_uid,
            "group": _name(lambda: grp.getgrgid(found.st_gid).gr_name),
            "gid": found.st_gid,
        }
        return {**attributes, "checksum": _checksum(expanded)} if kind == "file" else attributes
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise UserError("Cannot read '%s': %s. Check the path and its permissions." % (path, reason)) from None


def _name(fetch: t.Callable[[], str]) -> str:
    try:
        return fetch()
    except KeyError:
        return ""


def _checksum(path: str) -> str:
    """Return the SHA-1 of a file, the digest that Ansible compares."""
    digest = hashlib.sha1()  # noqa: S324 - not used for security
    with open(path, "rb") as file:  # noqa: PTH123
        for chunk in iter(lambda: file.read(_CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


HOST_FILES_INFO: Task[t.Any] = Task(
    HOST, {"paths": {"type": "list", "elements": "str", "required": True}}, _host_files_info
)
