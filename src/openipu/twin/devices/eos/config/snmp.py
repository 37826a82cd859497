# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP users and communities of a configuration."""

from __future__ import annotations

import contextlib

from openipu.twin.devices.eos.config.tree import Block, Config
from openipu.twin.devices.snmp.users import Community, Credentials, User

_PRIV_KEY = {"des": 16, "aes": 16, "aes192": 24, "aes256": 32}  # bytes
# `snmp-server user NAME GROUP v3 localized ENGINE auth HASH KEY priv CIPHER KEY`, as EOS stores it.
_USER_WORDS = 13


def credentials(config: Config) -> Credentials:
    """Return the users and communities that may read. The twin serves no writes.

    SNMPv3 users need both keys, and a group for SNMPv3. EOS also has users with fewer keys; the twin ignores them,
    and those with names or keys that are not valid.
    """
    lines = config.root.all("snmp-server", "community")
    return Credentials(tuple(_users(config.root)), tuple(Community(line.split()[2]) for line in lines))


def _users(root: Block) -> list[User]:
    groups = {words[2] for words in map(str.split, root.all("snmp-server", "group")) if words[3] == "v3"}
    found = []
    for words in map(str.split, root.all("snmp-server", "user")):
        if len(words) == _USER_WORDS and words[4:6] == ["v3", "localized"] and words[3] in groups:
            # The parser accepts any text after v3. EOS rejects keys and names that are not valid.
            with contextlib.suppress(ValueError):
                found.append(_user(words[2], *words[8:10], *words[11:13]))
    return found


def _user(name: str, auth: str, auth_key: str, priv: str, priv_key: str) -> User:
    """Return a user with localized keys. Raises ValueError when it cannot log in."""
    user = User(name, auth_key, priv_key, auth, priv, localized=True)
    bytes.fromhex(auth_key)
    if len(bytes.fromhex(priv_key)) < _PRIV_KEY[priv]:
        raise ValueError("short key")
    return user
