# SPDX-License-Identifier: GPL-3.0-or-later
"""The files in ``~/.ipuof.conf.d`` by which the user's Poplar programs find a partition."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from openipu.vipu.cli.session import Failed


def folder() -> Path:
    """Where they are; raises Failed."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.ipuof import USER_FOLDER

    try:
        return Path(USER_FOLDER.expanduser())
    except RuntimeError:
        raise Failed("There is no home folder for the IPUoF configuration: set HOME.") from None


def write(id: str, config: Any) -> list[Path]:
    """Write the files of a PartitionConfig message, for the user only; raises Failed."""
    from ansible_collections.openipu.pod.plugins.module_utils.files import write_private
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import ipuof

    where = folder()
    paths = []
    try:
        for name, text in ipuof.files(id, config).items():
            write_private(where / name, text)
            paths.append(where / name)
    except OSError as error:
        raise Failed(
            f"Partition {id!r} is ACTIVE, but its IPUoF configuration cannot be written to {str(where)!r} "
            f"({error.strerror}): get it with 'vipu get partition {id} --ipuof-configs'."
        ) from None
    return paths


def present(id: str) -> bool:
    """Whether there are files that could be of this partition."""
    pattern = re.compile(re.escape(id) + r"_(gcd\d+_)?ipuof\.conf")
    try:
        return any(pattern.fullmatch(path.name) for path in folder().iterdir())
    except (OSError, Failed):
        return False


def remove(id: str, num_gcds: int) -> None:
    """Remove the files of a partition of so many GCDs, and no other's; raises Failed."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.ipuof import file_name

    for gcd in range(num_gcds):
        path = folder() / file_name(id, gcd, num_gcds)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise Failed(
                f"The partition is removed, but its file {str(path)!r} cannot be ({error.strerror}): "
                "remove it yourself."
            ) from None
