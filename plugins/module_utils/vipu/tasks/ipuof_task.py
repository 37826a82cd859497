# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_ipuof_config: write the IPUoF configuration of a partition to a file."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ...atomic_files import write_private
from ...reconcile import Object
from ...runner import Task, TaskError
from .. import ipuof
from ..client import VipuError
from ..options import VIPU, Run


class _File(t.NamedTuple):
    """Content and mode of a file."""

    content: str
    mode: int


def _ipuof_config(run: Run) -> Object:
    """Converge the file of a partition."""
    params = run.params
    mode, dest = _mode(params["mode"]), Path(params["dest"])
    desired = None
    if params["state"] == "present":
        try:
            name, content = _desired_file(run)
        except VipuError as error:
            if not (run.check_mode and error.code == "NOT_FOUND"):
                raise
            # An earlier task creates the partition, but not in check mode.
            return {"changed": True, "dest": params["dest"]}
        desired = _File(content, mode)
        dest = dest / name if dest.is_dir() else dest
    elif dest.is_dir():
        dest = _existing_path(dest, params["id"], params["gcd"])
    actual = _actual(dest)
    result: Object = {"changed": actual != desired, "dest": str(dest)}
    if desired and not dest.parent.exists():
        if not dest.parent.parent.is_dir():
            raise TaskError(
                "Cannot write file '%s': folder '%s' does not exist. Create it, or correct dest."
                % (dest, dest.parent.parent)
            )
        result["created_folder"] = str(dest.parent)
    if run.diff:
        result["diff"] = {
            "before_header": _header(dest, actual),
            "after_header": _header(dest, desired),
            "before": actual.content if actual else "",
            "after": desired.content if desired else "",
        }
    if actual != desired and not run.check_mode:
        try:
            if desired:
                write_private(dest, *desired)
            else:
                dest.unlink()
        except OSError as error:
            raise TaskError("Cannot write file '%s': %s." % (dest, _reason(error))) from None
    return result


def _mode(value: t.Any) -> int:
    """Return permissions from octal text or from the number that YAML makes of 0600."""
    try:
        mode = value if isinstance(value, int) else int(value, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise TaskError(
            "Cannot write the IPUoF configuration: mode %s is invalid. Use octal digits in quotes, such as '0600'."
            % value
        )
    return mode


def _desired_file(run: Run) -> tuple[str, str]:
    """Return name and content of the file."""
    id, gcd = run.params["id"], run.params["gcd"]
    configs = run.transport.ipuof_config(id)
    if gcd is None and len(configs) > 1:
        raise TaskError(
            "Cannot write the IPUoF configuration of partition '%s': it has %d GCDs. Select one with gcd."
            % (id, len(configs))
        )
    if gcd is not None and not 0 <= gcd < len(configs):
        raise TaskError(
            "Cannot write the IPUoF configuration of partition '%s': it has no GCD %d. Its GCDs are 0 to %d."
            % (id, gcd, len(configs) - 1)
        )
    return ipuof.file_name(id, gcd or 0, len(configs)), ipuof.text(configs[gcd or 0])


def _existing_path(folder: Path, id: str, gcd: int | None) -> Path:
    """Return the file of a partition in a folder. The partition, and so its number of GCDs, may be gone."""
    single = folder / ipuof.file_name(id, 0, 1)
    if gcd is None or (gcd == 0 and single.exists()):
        return single
    return folder / ipuof.file_name(id, gcd, gcd + 2)


def _actual(dest: Path) -> _File | None:
    try:
        return _File(dest.read_bytes().decode(errors="replace"), dest.stat().st_mode & 0o777)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TaskError("Cannot read file '%s': %s." % (dest, _reason(error))) from None


def _header(dest: Path, file: _File | None) -> str:
    return "%s (mode %04o)" % (dest, file.mode) if file else "%s (absent)" % dest


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


VIPU_IPUOF_CONFIG = Task(
    VIPU,
    {
        "id": {"type": "str", "required": True},
        "gcd": {"type": "int"},
        "dest": {"type": "path", "required": True},
        "mode": {"type": "raw", "default": "0600"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    },
    _ipuof_config,
)
