# SPDX-License-Identifier: GPL-3.0-or-later
"""Users and communities of an SNMP agent. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

AUTHENTICATION = ("md5", "sha", "sha224", "sha256", "sha384", "sha512")
ENCRYPTION = ("des", "aes", "aes192", "aes256")
SHORTEST_KEY = 8  # characters (RFC 3414, 11.2)


@dataclass(frozen=True, slots=True)
class User:
    """An SNMPv3 user at security level authPriv: both keys are required. Without ``write``, read-only.

    ``localized`` keys are the hexadecimal keys for the engine of the device (RFC 3414, 2.6), not passwords.
    """

    name: str
    auth_key: str = field(repr=False)
    priv_key: str = field(repr=False)
    auth: str = "sha"
    priv: str = "aes"
    write: bool = False
    localized: bool = False

    def __post_init__(self) -> None:
        """Validate the user. Raises ValueError with a one-line message."""
        if not self.name or len(self.name) > 32:
            raise ValueError(
                f"Cannot create SNMPv3 user {self.name!r}: invalid length of the name. Use 1 to 32 characters."
            )
        if self.auth not in AUTHENTICATION:
            raise ValueError(f"{self._problem('authentication', self.auth)} Choose from {', '.join(AUTHENTICATION)}.")
        if self.priv not in ENCRYPTION:
            raise ValueError(f"{self._problem('encryption', self.priv)} Choose from {', '.join(ENCRYPTION)}.")
        if min(len(self.auth_key), len(self.priv_key)) < SHORTEST_KEY:
            raise ValueError(
                f"Cannot create SNMPv3 user {self.name!r}: a key is too short. Use at least {SHORTEST_KEY} characters."
            )

    def _problem(self, setting: str, value: str) -> str:
        return f"Cannot create SNMPv3 user {self.name!r}: {setting} {value!r} is unknown."


@dataclass(frozen=True, slots=True)
class Community:
    """A community of SNMPv1 and v2c."""

    name: str = field(repr=False)
    write: bool = False


@dataclass(frozen=True, slots=True)
class Credentials:
    """Accepted users and communities; without communities, only SNMPv3 is accepted."""

    users: Sequence[User] = ()
    communities: Sequence[Community] = ()
