# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files in ``~/.ipuof.conf.d``, with which Poplar programs connect to a partition."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from openipu.vipu.cli.session import VipuCommandError


def folder() -> Path:
    """Return the folder of the files. Raises VipuCommandError."""
    from openipu.shared.vipu.ipuof import USER_FOLDER

    try:
        return Path(USER_FOLDER.expanduser())
    except RuntimeError:
        raise VipuCommandError(
            "Cannot find the folder of the IPUoF configuration: there is no home folder. Set HOME."
        ) from None


def write(id: str, config: Any) -> list[Path]:
    """Write the files of a PartitionConfig message, readable by the user only. Raises VipuCommandError."""
    from openipu.shared.atomic_files import write_private
    from openipu.shared.vipu import ipuof

    target = folder()
    paths = []
    try:
        for name, text in ipuof.files(id, config).items():
            write_private(target / name, text)
            paths.append(target / name)
    except OSError as error:
        raise VipuCommandError(
            f"Partition {id!r} is ACTIVE, but its IPUoF configuration cannot be written to {str(target)!r} "
            f"({error.strerror}). Get it with 'vipu get partition {id} --ipuof-configs'."
        ) from None
    return paths


def present(id: str) -> bool:
    """Return whether files exist whose names match this partition."""
    pattern = re.compile(re.escape(id) + r"_(gcd\d+_)?ipuof\.conf")
    try:
        return any(pattern.fullmatch(path.name) for path in folder().iterdir())
    except (OSError, VipuCommandError):
        return False


def remove(id: str, num_gcds: int) -> None:
    """Remove the files of a partition with ``num_gcds`` GCDs, and no other files. Raises VipuCommandError."""
    from openipu.shared.vipu.ipuof import file_name

    for gcd in range(num_gcds):
        path = folder() / file_name(id, gcd, num_gcds)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise VipuCommandError(
                f"The partition is removed, but its file {str(path)!r} cannot be removed ({error.strerror}). "
                "Remove the file manually."
            ) from None
