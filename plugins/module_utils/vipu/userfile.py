# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that a new user's access key goes to: a configuration of the command lines, for its owner only."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from .client import Connection
from .ipuof import write_private
from .runner import TaskError


def user_file(dest: str | None, user: str) -> Path | None:
    """The file that is meant; in a folder, the one that the command line would have written there."""
    if not dest:
        return None
    path = Path(dest)
    return path / ("%s.vipu-cli.hcl" % user) if path.is_dir() else path


def check_writable(file: Path) -> None:
    """Raise TaskError when the file could not be written; makes its folder when there is none."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise TaskError(
            "Cannot write %s: %s; the user was not created, since its access key is told only once."
            % (file, _reason(error))
        ) from None


def write_user_file(file: Path, connection: Connection, user: str, access_key: str | None) -> None:
    """Write what ``vipu --config`` reads; TaskError says what to do when the key is lost."""
    remedy = "remove user '%s' and create it again" % user
    if not access_key:
        raise TaskError("User '%s' was created, but no access key was told: %s." % (user, remedy))
    lines = {
        "api-host": connection.host,
        "api-port": str(connection.port),
        "api-user-id": user,
        "api-access-key": access_key,
    }
    try:
        write_private(file, "".join("%s=%s\n" % (name, json.dumps(value)) for name, value in lines.items()))
    except OSError as error:
        raise TaskError("Cannot write %s: %s; mend that, %s." % (file, _reason(error), remedy)) from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
