# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that only look, and the one that writes a partition's IPUoF configuration to a file."""

from __future__ import annotations

from pathlib import Path

from ..reconcile import Object
from . import ipuof
from .client import VipuError
from .runner import Run, Task, TaskError

_READERS = {
    "agents": "agent",
    "clusters": "cluster",
    "allocations": "allocation",
    "partitions": "partition",
    "users": "user",
}


def _info(run: Run) -> Object:
    result: Object = {"changed": False}
    subset = run.params["gather_subset"]
    for name in subset:
        if name in _READERS:
            result[name] = run.transport.read(_READERS[name])
    if "version" in subset:
        result["version"] = run.transport.version()
    if "fits" in subset:
        allocations = result["allocations"] if "allocations" in result else run.transport.read("allocation")
        sizes = run.params["sizes"]
        # Text keys: a module's result goes through JSON, and the fast path's shall be the same.
        result["fits"] = {
            item["id"]: {str(size): count for size, count in run.transport.fits(item["id"], sizes).items()}
            for item in allocations
        }
    return result


VIPU_INFO = Task(
    {
        "gather_subset": {
            "type": "list",
            "elements": "str",
            "choices": ["version", *_READERS, "fits"],
            "default": ["version", "agents", "clusters", "allocations", "partitions"],
        },
        "sizes": {"type": "list", "elements": "int", "default": [1, 2, 4, 8, 16, 32, 64]},
    },
    _info,
)


def _partition_info(run: Run) -> Object:
    id = run.params["id"]
    found = [item for item in run.transport.read("partition") if id is None or item["id"] == id]
    for item in found:
        item.update(run.transport.partition_status(item["id"]))
        if run.params["ipuof"]:
            item["ipuof"] = run.transport.ipuof_config(item["id"]) if item["state"] == "ACTIVE" else None
    return {"changed": False, "partitions": found}


VIPU_PARTITION_INFO = Task({"id": {"type": "str"}, "ipuof": {"type": "bool", "default": False}}, _partition_info)


def _discovery(run: Run) -> Object:
    return {"changed": False, "agents": run.transport.discovered()}


VIPU_AGENT_DISCOVERY_INFO = Task({}, _discovery)


def _ipuof_config(run: Run) -> Object:
    """The file as it has to be, compared with the file as it is."""
    params = run.params
    try:
        name, content = _wanted(run) if params["state"] == "present" else (None, None)
    except VipuError as error:
        if not (run.check_mode and error.code == "NOT_FOUND"):
            raise
        # In check mode the task that makes the partition has not made it.
        return {"changed": True, "dest": params["dest"]}
    dest = Path(params["dest"])
    if dest.is_dir():
        dest /= name or ipuof.file_name(params["id"], params["gcd"] or 0, 1 if params["gcd"] is None else 2)
    before = _content(dest)
    changed = before != content or (content is not None and dest.stat().st_mode & 0o777 != 0o600)
    result: Object = {"changed": changed, "dest": str(dest)}
    if run.diff:
        header = {"before_header": str(dest), "after_header": str(dest)}
        result["diff"] = {**header, "before": before or "", "after": content or ""}
    if changed and not run.check_mode:
        try:
            if content is None:
                dest.unlink()
            else:
                ipuof.write_private(dest, content)
        except OSError as error:
            raise TaskError("Cannot write %s: %s." % (dest, (error.strerror or str(error)).lower())) from None
    return result


def _wanted(run: Run) -> tuple[str, str]:
    """Name and content of the file."""
    id, gcd = run.params["id"], run.params["gcd"]
    configs = run.transport.ipuof_config(id)
    if gcd is None and len(configs) > 1:
        raise TaskError("Partition '%s' has %d GCDs: say with gcd which one the file is for." % (id, len(configs)))
    if gcd is not None and not 0 <= gcd < len(configs):
        raise TaskError("Partition '%s' has no GCD %d: its GCDs are 0 to %d." % (id, gcd, len(configs) - 1))
    return ipuof.file_name(id, gcd or 0, len(configs)), ipuof.text(configs[gcd or 0])


def _content(dest: Path) -> str | None:
    try:
        return dest.read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise TaskError("Cannot read %s: %s." % (dest, (reason or "").lower())) from None


VIPU_IPUOF_CONFIG = Task(
    {
        "id": {"type": "str", "required": True},
        "gcd": {"type": "int"},
        "dest": {"type": "path", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    },
    _ipuof_config,
)
