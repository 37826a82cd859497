# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that a new user's access key goes to: a configuration of the command lines, for its owner only."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from ..files import write_private
from .client import Connection, VipuError

# Settings that have a place in the file only when the connection has them, and its fields.
_FILES = {"ca-path": "ca_path", "client-cert": "client_cert", "client-key": "client_key"}
_METADATA = {"metadata-user-id-key": "user_id_metadata", "metadata-access-key-key": "access_key_metadata"}


def write_config(file: Path, connection: Connection, user: str, access_key: str) -> None:
    """Write the configuration by which a user calls the controller of this connection with ``vipu --config``.

    Whole or not at all, for the file's owner only; certificates and keys are named with absolute paths.
    Raises OSError.
    """
    settings: dict[str, str | int] = {
        "api-host": connection.host,
        "api-port": connection.port,
        "api-user-id": user,
        "api-access-key": access_key,
    }
    for name, field in _FILES.items():
        path = getattr(connection, field)
        if path:
            settings[name] = str(Path(path).expanduser().absolute())
    for name, field in _METADATA.items():
        if getattr(connection, field) != getattr(Connection, field):
            settings[name] = getattr(connection, field)
    write_private(file, "".join("%s=%s\n" % (name, json.dumps(value)) for name, value in settings.items()))


def user_file(dest: str | None, user: str) -> Path | None:
    """The file that is meant; in a folder, the one that the command line would have written there."""
    if not dest:
        return None
    path = Path(dest)
    return path / ("%s.vipu-cli.hcl" % user) if path.is_dir() else path


def check_writable(file: Path) -> None:
    """Raise VipuError when the file could not be written; makes its folder when there is none."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise VipuError(
            "Cannot write %s: %s; the user was not created, since its access key is told only once."
            % (file, _reason(error))
        ) from None


def write_user_file(file: Path, connection: Connection, user: str, access_key: str | None) -> None:
    """Write the file of a user who was just created; VipuError says what to do when the key is lost."""
    remedy = "remove user '%s' and create it again" % user
    if not access_key:
        raise VipuError("User '%s' was created, but no access key was told: %s." % (user, remedy))
    try:
        write_config(file, connection, user, access_key)
    except OSError as error:
        raise VipuError("Cannot write %s: %s; mend that, %s." % (file, _reason(error), remedy)) from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
