# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that only look, and the one that writes a partition's IPUoF configuration to a file."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ..files import write_private
from ..reconcile import Object
from ..runner import Task, TaskError
from . import ipuof
from .client import VipuError
from .options import VIPU, Run

_KINDS = {
    "agents": "agent",
    "clusters": "cluster",
    "allocations": "allocation",
    "partitions": "partition",
    "users": "user",
}


def _info(run: Run) -> Object:
    subset = dict.fromkeys(run.params["gather_subset"])
    result: Object = {"changed": False}
    if "version" in subset:
        result["version"] = run.transport.version()
    asked = [kind for name, kind in _KINDS.items() if name in subset or (kind == "allocation" and "fits" in subset)]
    read = run.transport.read_all(asked)
    result.update({name: read[kind] for name, kind in _KINDS.items() if name in subset})
    if "ipu_attributes" in subset:
        found = run.transport.ipu_attributes()
        result["ipu_attributes"] = {agent: _text_keys(ipus) for agent, ipus in found.items()}
    if "fits" in subset:
        sizes = run.params["sizes"]
        ids = [item["id"] for item in read["allocation"]]
        result["fits"] = {id: _text_keys(run.transport.fits(id, sizes)) for id in ids}
    return result


def _text_keys(mapping: dict[int, t.Any]) -> dict[str, t.Any]:
    """A module's result goes through JSON, where keys are text; the fast path's shall be the same."""
    return {str(key): value for key, value in mapping.items()}


VIPU_INFO = Task(
    VIPU,
    {
        "gather_subset": {
            "type": "list",
            "elements": "str",
            "choices": ["version", *_KINDS, "ipu_attributes", "fits"],
            "default": ["version", "agents", "clusters", "allocations", "partitions"],
        },
        "sizes": {"type": "list", "elements": "int", "default": [1, 2, 4, 8, 16, 32, 64]},
    },
    _info,
)


def _partition_info(run: Run) -> Object:
    id = run.params["id"]
    listed = {item["id"]: item for item in run.transport.read("partition") if id is None or item["id"] == id}
    details = {} if id is None else run.transport.partition_details(list(listed))  # a call for each, it may be
    statuses = run.transport.partition_statuses(list(listed))
    found = [{**item, **details.get(id, {}), **statuses[id]} for id, item in listed.items() if id in statuses]
    if run.params["ipuof"]:
        for item in found:
            item["ipuof"] = run.transport.ipuof_config(item["id"]) if item["state"] == "ACTIVE" else None
    return {"changed": False, "partitions": found}


VIPU_PARTITION_INFO = Task(VIPU, {"id": {"type": "str"}, "ipuof": {"type": "bool", "default": False}}, _partition_info)


def _discovery(run: Run) -> Object:
    return {"changed": False, "agents": run.transport.discovered()}


VIPU_AGENT_DISCOVERY_INFO = Task(VIPU, {}, _discovery)


class _File(t.NamedTuple):
    """A file as it is, or as it has to be."""

    content: str
    mode: int


def _ipuof_config(run: Run) -> Object:
    """The file as it has to be, compared with the file as it is."""
    params = run.params
    mode, dest = _mode(params["mode"]), Path(params["dest"])
    wanted = None
    if params["state"] == "present":
        try:
            name, content = _wanted(run)
        except VipuError as error:
            if not (run.check_mode and error.code == "NOT_FOUND"):
                raise
            # The task before this one would have made the partition.
            return {"changed": True, "dest": params["dest"]}
        wanted = _File(content, mode)
        dest = dest / name if dest.is_dir() else dest
    elif dest.is_dir():
        dest = _there(dest, params["id"], params["gcd"])
    actual = _actual(dest)
    result: Object = {"changed": actual != wanted, "dest": str(dest)}
    if run.diff:
        result["diff"] = {
            "before_header": _header(dest, actual),
            "after_header": _header(dest, wanted),
            "before": actual.content if actual else "",
            "after": wanted.content if wanted else "",
        }
    if actual != wanted and not run.check_mode:
        try:
            if wanted:
                write_private(dest, *wanted)
            else:
                dest.unlink()
        except OSError as error:
            raise TaskError("Cannot write %s: %s." % (dest, _reason(error))) from None
    return result


def _mode(value: t.Any) -> int:
    """Permissions, as text in octal or as the number that YAML makes of 0600."""
    try:
        mode = value if isinstance(value, int) else int(value, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise TaskError("The mode %s is none: write it in octal and in quotes, like '0600'." % value)
    return mode


def _wanted(run: Run) -> tuple[str, str]:
    """Name and content of the file."""
    id, gcd = run.params["id"], run.params["gcd"]
    configs = run.transport.ipuof_config(id)
    if gcd is None and len(configs) > 1:
        raise TaskError("Partition '%s' has %d GCDs: say with gcd which one the file is for." % (id, len(configs)))
    if gcd is not None and not 0 <= gcd < len(configs):
        raise TaskError("Partition '%s' has no GCD %d: its GCDs are 0 to %d." % (id, gcd, len(configs) - 1))
    return ipuof.file_name(id, gcd or 0, len(configs)), ipuof.text(configs[gcd or 0])


def _there(folder: Path, id: str, gcd: int | None) -> Path:
    """The file of a partition in a folder; the partition may be gone, and with it the number of its GCDs."""
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
        raise TaskError("Cannot read %s: %s." % (dest, _reason(error))) from None


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
