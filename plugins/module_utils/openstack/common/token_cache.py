# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of Keystone that openstacksdk keeps in a keyring: ``auth: true`` in ``cache`` of ``clouds.yaml``."""

from __future__ import annotations

import configparser
import contextlib
import typing as t

READ_ERRORS: tuple[type[Exception], ...] = (configparser.Error, ValueError)  # of a damaged file with tokens
try:
    from keyring.errors import KeyringError

    READ_ERRORS = (KeyringError, *READ_ERRORS)
except ImportError:
    pass


def login_of(connection: t.Any) -> str | None:
    """Return the token and the catalog of a connection, as the SDK stores them. None before or without a login."""
    with contextlib.suppress(NotImplementedError):  # of plugins without a login
        return t.cast("str | None", connection.config.get_auth().get_auth_state())
    return None


def reason(error: Exception) -> str:
    """Return why a login cannot be read. Other errors than those of keyrings could contain a part of the token."""
    return str(error).rstrip(".") if isinstance(error, READ_ERRORS[:-2]) else "damaged data (%s)" % type(error).__name__


def close(connection: t.Any, stored: str | None) -> None:
    """Close a connection. The SDK stores its login then, unless it still is the ``stored`` one.

    A keyring in a file is empty for a moment while it stores, which tasks on other hosts of the play could notice.
    """
    with contextlib.suppress(Exception):
        if login_of(connection) == stored:
            connection.config.set_auth_cache = _store_nothing
        connection.close()


def _store_nothing() -> None:
    pass
