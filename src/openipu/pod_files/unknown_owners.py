# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of variables beside a pod.yml whose group or host it does not have. Ansible ignores unknown ones silently."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from openipu.pod_files.variables import FOLDERS, SUFFIXES, VAULT_FILE, Variables
from openipu.shared.pod import model
from openipu.shared.pod.inventory_names import BUILT_IN, GROUPS, LOCALHOST, UNMANAGED, group_name
from openipu.shared.pod.mistakes import Mistakes, PodError, unknown
from openipu.shared.pod.source import Block

# Files beside pod.yml that are no inventories.
_NO_INVENTORIES = (
    *("ansible.cfg", "pod.schema.json", VAULT_FILE),
    *("clouds.yaml", "clouds.yml", "requirements.yaml", "requirements.yml"),
)
_INVENTORIES = (*filter(None, SUFFIXES), ".ini", ".toml")  # ends of the names of inventories
_WORDS = ("hosts", "inventory")  # in the names of inventories without such an end


def found(pod: model.Pod, top: Block, files: Variables) -> Iterator[PodError]:
    """Yield a warning for each unknown group and host. ``top`` is pod.yml.

    There are none if its options or other inventories in its folder may define further groups. The file of a warning
    is relative to that of pod.yml. Raises OSError.
    """
    if top.get("shared_inventory") or "keyed_groups" in top or _has_other_inventory(pod):
        return
    groups = {*GROUPS, *BUILT_IN, group_name(f"pod_{pod.name}"), *(group_name(rack.name) for rack in pod.racks)}
    groups.update(map(group_name, top.get("groups") or ()))
    names = {"group": groups, "host": {device.name for device in pod.devices} | {LOCALHOST}}
    mistakes = Mistakes()
    unused = {UNMANAGED % group for group in GROUPS}
    for path in dict.fromkeys(map(_owner, sorted((*files.files, *files.encrypted)))):
        kind, other = ("group", "host") if path.parts[0] == FOLDERS[0] else ("host", "group")
        name = path.stem if path.suffix in SUFFIXES else path.name
        if name in names[kind] or name.startswith(".") or (kind == "group" and name in unused):
            continue
        if name in names[other]:
            message = f"'{name}' is a {other}: move it to {other}_vars"
        else:
            hint = unknown(kind, name, names[kind], mistakes).removeprefix(f"unknown {kind} '{name}': ")
            message = f"'{name}' is no {kind} of this pod.yml: {hint}"
        yield PodError(str(path), None, message)


def _owner(path: Path) -> Path:
    """Return the file or folder with the variables of a group or host."""
    return Path(*path.parts[:2])


def _has_other_inventory(pod: model.Pod) -> bool:
    """Return whether a file beside pod.yml may be a further inventory. Raises OSError."""
    folder = Path(pod.file).parent
    own = (Path(pod.file), Path(pod.machines_file), *(folder / name for name in _NO_INVENTORIES))
    return any(_may_be_inventory(path) for path in folder.iterdir() if path not in own)


def _may_be_inventory(path: Path) -> bool:
    if path.name.startswith(".") or not path.is_file():
        return False
    if os.access(path, os.X_OK):
        return True
    if not path.suffix:
        return any(word in path.name for word in _WORDS)
    return path.suffix in _INVENTORIES and not _is_list(path.read_text("utf-8", "replace"))


def _is_list(text: str) -> bool:
    """Return whether a YAML text is a list, as playbooks are."""
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "---")))
    return next(lines, "").startswith("- ")
