# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP users and communities of a configuration."""

from __future__ import annotations

from openipu.twin.devices.eos.config.tree import Block, Config
from openipu.twin.devices.snmp.users import AUTHENTICATION, ENCRYPTION, Community, Credentials, User

_PRIV_KEY = {"des": 16, "aes": 16, "aes192": 24, "aes256": 32}  # bytes
# `snmp-server user NAME GROUP v3 localized ENGINE auth HASH KEY priv CIPHER KEY`, as EOS stores it.
_USER_WORDS = 13


def credentials(config: Config) -> Credentials:
    """Return the users and communities that may read. The twin serves no writes.

    SNMPv3 users need both keys, and a group for SNMPv3. EOS also has users with fewer keys; the twin ignores them.
    """
    lines = config.root.all("snmp-server", "community")
    return Credentials(tuple(_users(config.root)), tuple(Community(line.split()[2]) for line in lines))


def _users(root: Block) -> list[User]:
    groups = {words[2] for words in map(str.split, root.all("snmp-server", "group")) if words[3] == "v3"}
    found = []
    for words in map(str.split, root.all("snmp-server", "user")):
        if len(words) != _USER_WORDS or words[4] != "v3" or words[3] not in groups:
            continue
        name, (auth, auth_key), (priv, priv_key) = words[2], words[8:10], words[11:13]
        known = auth in AUTHENTICATION and priv in ENCRYPTION
        if known and len(bytes.fromhex(priv_key)) >= _PRIV_KEY[priv]:
            found.append(User(name, auth_key, priv_key, auth, priv, localized=True))
    return found
