# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module poplar_array does."""

from __future__ import annotations

import typing as t

from ..reconcile import Object, SentenceError, converge, plan
from ..runner import Run, Task, TaskError
from .arrays import ARRAY, FILE_SYSTEM, FILESYSTEM, LABEL_LENGTH, Writer, device_of, file_system, find, warnings
from .commands import HOST, Host
from .disks import nvme

_LEVELS = ("raid0", "raid1", "raid5", "raid6", "raid10")
_FEWEST = {"raid0": 2, "raid1": 2, "raid5": 3, "raid6": 4, "raid10": 2}


def _array(run: Run[Host]) -> Object:
    params = run.params
    name, level = params["name"], params["level"]
    if not 0 < len(name) <= LABEL_LENGTH or not name.replace("-", "").replace("_", "").isalnum():
        raise SentenceError(
            "'%s' cannot be the name of an array: it may have up to %d letters, digits, '-' and '_'."
            % (name, LABEL_LENGTH)
        )
    disks = _disks(run.transport, params)
    found = find(run.transport, name, level, disks)
    made = file_system(run.transport, found.device, name) if found and found.device else None
    if found:
        run.warnings.extend(warnings(name, found))
        disks = list(found.members)
    wanted_array = {"name": name, "level": level, "disks": disks, "active": True}
    wanted_files: list[Object] = [{"device": device_of(name), "type": FILE_SYSTEM, "label": name}]
    if found and not found.device:
        wanted_files = []  # what is on it cannot be known before it runs
    steps = plan(ARRAY, [wanted_array], [found.told(name)] if found else [])
    steps += plan(FILESYSTEM, wanted_files, [made] if made else [])
    report = converge(steps, Writer(run.transport, found, params["chunk"]), run.check_mode, run.diff)
    return {**report.result(), "device": device_of(name), "disks": disks}


def _disks(host: Host, params: Object) -> list[str]:
    """Those that are named, or all NVMe disks. Raises SentenceError when they are not as many as are wanted."""
    name, level, count = params["name"], params["level"], params["count"]
    disks: list[str] = params["disks"] or nvme(host)
    for index, path in enumerate(disks):
        if path in disks[:index]:
            raise TaskError("Disk %s stands twice in disks: leave one out." % path)
    if count is not None and len(disks) != count:
        which = "the option disks has" if params["disks"] else "this host has"
        raise SentenceError(
            "Array '%s' wants %d disks and %s %d%s: name those that it may have in disks, or set count."
            % (name, count, which, len(disks), " (%s)" % ", ".join(disks) if disks else "")
        )
    if len(disks) < _FEWEST[level]:
        raise SentenceError(
            "Array '%s' has %d disks and %s needs %d: name more, or another level."
            % (name, len(disks), level, _FEWEST[level])
        )
    return disks


POPLAR_ARRAY: Task[t.Any] = Task(
    HOST,
    {
        "name": {"type": "str", "required": True},
        "level": {"type": "str", "choices": list(_LEVELS), "default": "raid6"},
        "disks": {"type": "list", "elements": "path", "default": []},
        "count": {"type": "int"},
        "chunk": {"type": "int"},
    },
    _array,
)
