# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module poplar_array: create or start an md array, and create its file system."""

from __future__ import annotations

import typing as t

from ..reconcile import Object, UserError, converge, plan
from ..runner import Run, Task, TaskError
from .arrays import (
    ARRAY,
    FILE_SYSTEM,
    FILESYSTEM,
    LABEL_LENGTH,
    Writer,
    device_of,
    find_array,
    find_file_system,
    warnings,
)
from .commands import HOST, Host
from .disks import nvme_disks

_LEVELS = ("raid0", "raid1", "raid5", "raid6", "raid10")
_MIN_DISKS = {"raid0": 2, "raid1": 2, "raid5": 3, "raid6": 4, "raid10": 2}


def _poplar_array(run: Run[Host]) -> Object:
    params = run.params
    name, level = params["name"], params["level"]
    if not 0 < len(name) <= LABEL_LENGTH or not name.replace("-", "").replace("_", "").isalnum():
        raise UserError(
            "Cannot use the array name '%s': names have 1 to %d letters, digits, '-' and '_'. Change name."
            % (name, LABEL_LENGTH)
        )
    disks = _select_disks(run.transport, params)
    array = find_array(run.transport, name, level, disks)
    files = find_file_system(run.transport, array.device, name) if array and array.device else None
    if array:
        run.warnings.extend(warnings(name, array))
        disks = list(array.members)
    desired_array = {"name": name, "level": level, "disks": disks, "active": True}
    desired_files: list[Object] = [{"device": device_of(name), "type": FILE_SYSTEM, "label": name}]
    if array and not array.device:
        desired_files = []  # the content of an array is unknown until it runs
    steps = plan(ARRAY, [desired_array], [array.as_object(name)] if array else [])
    steps += plan(FILESYSTEM, desired_files, [files] if files else [])
    report = converge(steps, Writer(run.transport, array, params["chunk"]), run.check_mode, run.diff)
    return {**report.result(), "device": device_of(name), "disks": disks}


def _select_disks(host: Host, params: Object) -> list[str]:
    """Return the disks of the options, or else all NVMe disks.

    Raises UserError for a duplicate, for another number than ``count``, and for too few disks for the level.
    """
    name, level, count = params["name"], params["level"], params["count"]
    disks: list[str] = params["disks"] or nvme_disks(host)
    for index, path in enumerate(disks):
        if path in disks[:index]:
            raise TaskError("Cannot use disk '%s' twice. Remove one entry from disks." % path)
    if count is not None and len(disks) != count:
        source = "disks lists" if params["disks"] else "this host has"
        raise UserError(
            "Cannot select %d disks for array '%s': %s %d%s. Set disks to its disks, or change count."
            % (count, name, source, len(disks), " (%s)" % ", ".join(disks) if disks else "")
        )
    if len(disks) < _MIN_DISKS[level]:
        raise UserError(
            "Cannot use %d disks for array '%s': %s needs at least %d. Add disks, or change level."
            % (len(disks), name, level, _MIN_DISKS[level])
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
    _poplar_array,
)
