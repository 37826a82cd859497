# SPDX-License-Identifier: GPL-3.0-or-later
"""Users of a switch in its configuration: `username` lines, which EOS merges into one line for each user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from passlib.hash import sha512_crypt

from openipu.twin.devices.eos.config.grammar import CliError

# Forms of `secret` that are hashes already, with the word that EOS prints.
_HASHES = {"5": "5", "sha512": "sha512"}
_ROUNDS = 5000  # of SHA-512 in crypt without a `rounds` field, as EOS hashes


@dataclass(frozen=True)
class User:
    """One user.

    Args:
        name: user name.
        privilege: level 0 to 15.
        role: name of the role.
        secret: `nopassword`, or `secret` with the kind of hash and the hash; empty for a user who cannot log in.
    """

    name: str
    privilege: int = 1
    role: str = ""
    secret: str = ""

    @property
    def hash(self) -> str:
        """Hash of the password; empty without one."""
        return self.secret.split()[-1] if self.secret.startswith("secret ") else ""

    @property
    def line(self) -> str:
        """Line of the configuration."""
        words = [f"username {self.name}"]
        words += [f"privilege {self.privilege}"] if self.privilege != 1 else []
        words += [f"role {self.role}"] if self.role else []
        return " ".join([*words, *([self.secret] if self.secret else [])])


def parse_user(line: str) -> User:
    """Return the user of a stored line."""
    return change_user(User(line.split()[1]), line.split()[2:])


def change_user(user: User, options: Sequence[str]) -> User:
    """Return a user with changed options, for example `["privilege", "15", "secret", "0", "…"]`.

    Raises:
        CliError: for an unknown option or an invalid value. The message never contains a password.
    """
    rest = list(options)
    while rest:
        word = rest.pop(0)
        if word == "nopassword":
            user = replace(user, secret=word)
        elif word == "privilege" and rest and rest[0].isdigit() and int(rest[0]) <= 15:
            user = replace(user, privilege=int(rest.pop(0)))
        elif word == "role" and rest:
            user = replace(user, role=rest.pop(0))
        elif word == "secret" and rest:
            user = replace(user, secret=_secret(rest))
        else:
            at = len(options) - len(rest) - 1
            shown = "" if "secret" in options[:at] else word  # it may be part of a password
            raise CliError(1002, f"Invalid input (at token {2 + at}: '{shown}')")
    return user


def remove_options(user: User, options: Sequence[str]) -> User:
    """Return a user without these options, as `no username NAME OPTION` leaves it.

    Raises:
        CliError: for an unknown option.
    """
    match options[0]:
        case "privilege":
            return replace(user, privilege=1)
        case "role":
            return replace(user, role="")
        case "secret" | "nopassword":
            kept = "" if user.secret.startswith(options[0]) else user.secret
            return replace(user, secret=kept)
    raise CliError(1002, f"Invalid input (at token 3: '{options[0]}')")


def _secret(words: list[str]) -> str:
    """Take the words of a secret from the beginning of a list, and return the secret as EOS stores it."""
    kind = words.pop(0)
    if kind == "*":
        return "secret *"
    if kind in _HASHES and words:
        return f"secret {_HASHES[kind]} {words.pop(0)}"
    password = words.pop(0) if kind == "0" and words else kind
    return f"secret sha512 {sha512_crypt.using(rounds=_ROUNDS).hash(password)}"
