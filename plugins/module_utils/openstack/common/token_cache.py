# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of Keystone that openstacksdk keeps in a keyring: ``auth: true`` in ``cache`` of ``clouds.yaml``."""

from __future__ import annotations

import configparser
import contextlib
import typing as t

from .sdk import HAS_OPENSTACK

if HAS_OPENSTACK:
    import openstack
    from openstack.config import cloud_region

KEYRING_ERRORS: tuple[type[Exception], ...] = ()
try:
    from keyring.errors import KeyringError

    KEYRING_ERRORS = (KeyringError,)
except ImportError:
    pass

# Errors of damaged data. A keyring in a file is incomplete for a moment while another task stores a token.
_DAMAGE = (configparser.Error, AttributeError, LookupError, TypeError, ValueError)


def connect(options: dict[str, t.Any]) -> t.Any:
    """Open a connection of the SDK with these keyword arguments. A damaged stored login counts as none.

    Raises one of ``KEYRING_ERRORS`` for a keyring that is locked or cannot be read.
    """
    with contextlib.suppress(*_DAMAGE):
        connection = openstack.connect(**options)
        if _has_expiration(connection):
            return connection
        close(connection, login_of(connection))
    with _without_keyring():
        return openstack.connect(**options)


def _has_expiration(connection: t.Any) -> bool:
    """Return False for a stored login that is damaged: the SDK reads when it expires only at the first request."""
    login = getattr(connection.config.get_auth(), "auth_ref", None)
    try:
        return login is None or login.expires is not None
    except _DAMAGE:
        return False


@contextlib.contextmanager
def _without_keyring() -> t.Iterator[None]:
    """Hide the library of keyrings from the SDK, as if it were not installed."""
    sdk: t.Any = cloud_region
    library = sdk.keyring
    sdk.keyring = None
    try:
        yield
    finally:
        sdk.keyring = library


def login_of(connection: t.Any) -> str | None:
    """Return the token and the catalog of a connection, as the SDK stores them. None before or without a login."""
    with contextlib.suppress(NotImplementedError):  # of plugins without a login
        return t.cast("str | None", connection.config.get_auth().get_auth_state())
    return None


def close(connection: t.Any, stored: str | None) -> None:
    """Close a connection. The SDK stores its login then, unless it still is the ``stored`` one."""
    with contextlib.suppress(Exception):
        if login_of(connection) == stored:
            connection.config.set_auth_cache = _store_nothing
        connection.close()


def _store_nothing() -> None:
    pass
