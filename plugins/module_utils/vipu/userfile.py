# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration file of the command lines with the access key of a new user, readable by its owner only."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from ..atomic_files import write_private
from .client import Connection, VipuError

# Optional settings and the fields of the connection that provide them.
_FILES = {"ca-path": "ca_path", "client-cert": "client_cert", "client-key": "client_key"}
_METADATA = {"metadata-user-id-key": "user_id_metadata", "metadata-access-key-key": "access_key_metadata"}


def write_config(file: Path, connection: Connection, user: str, access_key: str) -> None:
    """Write the configuration with which a user calls this controller by ``vipu --config``.

    The file is written atomically and readable by its owner only. Certificates and keys have absolute paths.
    Raises OSError.
    """
    settings: dict[str, str | int | bool] = {
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
    if connection.insecure_network:
        settings["insecure-network"] = True
    write_private(file, "".join("%s=%s\n" % (name, _hcl(value)) for name, value in settings.items()))


def _hcl(value: str | int | bool) -> str:
    """Return a value of a setting in HCL, where ``${`` and ``%{`` would begin a template."""
    return json.dumps(value).replace("${", "\\u0024{").replace("%{", "\\u0025{")


def set_certificate(file: Path, certificate: Path, key: Path, check_mode: bool) -> bool:
    """Set certificate and key in an existing configuration. Return whether it differed. Raises VipuError."""
    settings = {"client-cert": certificate, "client-key": key}
    try:
        if not file.is_file():
            return False
        before = file.read_text(encoding="utf-8")
        lines = [line for line in before.splitlines() if line.partition("=")[0].strip() not in settings]
        lines += ["%s=%s" % (name, _hcl(str(path.absolute()))) for name, path in settings.items()]
        after = "".join("%s\n" % line for line in lines)
        if sorted(after.splitlines()) == sorted(before.splitlines()):
            return False
        if not check_mode:
            write_private(file, after)
    except UnicodeDecodeError:
        message = "Cannot update file '%s': it is not UTF-8 text. Set client-cert and client-key in it."
        raise VipuError(message % file) from None
    except OSError as error:
        raise VipuError("Cannot write file '%s': %s." % (file, _reason(error))) from None
    return True


def user_file(dest: str | None, user: str) -> Path | None:
    """Return the file for a destination; in a folder, it has the name that the command line uses."""
    if not dest:
        return None
    path = Path(dest)
    return path / ("%s.vipu-cli.hcl" % user) if path.is_dir() else path


def check_writable(file: Path) -> None:
    """Check that the file can be written and create its folder. Raises VipuError."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise VipuError(
            "Cannot write file '%s': %s. The user was not created, because its access key is returned only once."
            % (file, _reason(error))
        ) from None


def write_user_file(file: Path, connection: Connection, user: str, access_key: str | None) -> None:
    """Write the file of a new user. Raises VipuError with the remedy when the key is lost."""
    remedy = "Remove user '%s' and create it again" % user
    if not access_key:
        raise VipuError(
            "Cannot write file '%s': the controller created user '%s', but returned no access key. %s."
            % (file, user, remedy)
        )
    try:
        write_config(file, connection, user, access_key)
    except OSError as error:
        raise VipuError("Cannot write file '%s': %s. %s." % (file, _reason(error), remedy)) from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
