# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may ask a PDU, and what with. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

AUTHENTICATION = ("md5", "sha", "sha256", "sha384", "sha512")
ENCRYPTION = ("des", "aes", "aes192", "aes256")
SHORTEST_KEY = 8  # characters (RFC 3414, 11.2)


@dataclass(frozen=True, slots=True)
class User:
    """An SNMPv3 user, who is let in with both keys only (authPriv); without ``write`` one that may read."""

    name: str
    auth_key: str = field(repr=False)
    priv_key: str = field(repr=False)
    auth: str = "sha"
    priv: str = "aes"
    write: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence."""
        if not self.name or len(self.name) > 32:
            raise ValueError(f"{self.name!r} is no name of an SNMPv3 user: 1 to 32 characters.")
        if self.auth not in AUTHENTICATION:
            raise ValueError(f"User {self.name!r}: authentication is one of {', '.join(AUTHENTICATION)}.")
        if self.priv not in ENCRYPTION:
            raise ValueError(f"User {self.name!r}: encryption is one of {', '.join(ENCRYPTION)}.")
        if min(len(self.auth_key), len(self.priv_key)) < SHORTEST_KEY:
            raise ValueError(f"User {self.name!r}: a key has at least {SHORTEST_KEY} characters.")


@dataclass(frozen=True, slots=True)
class Community:
    """A community of SNMPv1 and v2c."""

    name: str = field(repr=False)
    write: bool = False


@dataclass(frozen=True, slots=True)
class Credentials:
    """Everybody who may ask; nobody else gets in, and without communities only SNMPv3 does."""

    users: Sequence[User] = ()
    communities: Sequence[Community] = ()
