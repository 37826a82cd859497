# SPDX-License-Identifier: GPL-3.0-or-later
"""Users in the configuration of the EOS twin: EOS merges the options of a user into one line."""

from __future__ import annotations

import pytest
from passlib.hash import sha512_crypt

from openipu.twin.devices.eos.config.grammar import CliError
from tests.unit.twin.devices.eos.switch_lines import Console


def users(console: Console) -> list[str]:
    return [line for line in console.switch.running.lines() if line.startswith("username")]


def configured(*lines: str) -> Console:
    console = Console()
    console.configure(*lines)
    return console


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["username bob nopassword"], ["username bob nopassword"]),
        (
            ["username bob nopassword", "username bob privilege 15", "username bob role network-admin"],
            ["username bob privilege 15 role network-admin nopassword"],
        ),
        (["username bob secret sha512 $6$x", "username bob privilege 7"],
         ["username bob privilege 7 secret sha512 $6$x"]),
        (["username bob privilege 7 nopassword", "no username bob privilege"], ["username bob nopassword"]),
        (["username bob role a nopassword", "no username bob role a"], ["username bob nopassword"]),
        (["username bob nopassword", "username bob ssh-key ssh-rsa AAAA", "no username bob"], []),
        (["username bob nopassword", "username bob sshkey ssh-rsa AAAA"],
         ["username bob nopassword", "username bob ssh-key ssh-rsa AAAA"]),
        (["username bob nopassword", "username bob ssh-key ssh-rsa AAAA", "no username bob ssh-key"],
         ["username bob nopassword"]),
        (["username b nopassword", "username a nopassword", "username a ssh-key ssh-rsa AAAA"],
         ["username a nopassword", "username a ssh-key ssh-rsa AAAA", "username b nopassword"]),
    ],
)  # fmt: skip
def test_lines_are_merged(lines: list[str], expected: list[str]) -> None:
    assert users(configured(*lines)) == expected


@pytest.mark.parametrize("secret", ["secret s3cret-of-bob", "secret 0 s3cret-of-bob"])
def test_a_password_is_stored_as_a_hash(secret: str) -> None:
    console = configured(f"username bob {secret}")
    (line,) = users(console)
    start, _, stored = line.rpartition(" ")
    assert start == "username bob secret sha512"
    assert sha512_crypt.verify("s3cret-of-bob", stored)
    configured(*users(console))  # a printed line is a valid line


@pytest.mark.parametrize("options", ["secret 7 s3cret-hash", "secret two s3cret-words", "secret 0 pass s3cret-word"])
def test_errors_name_no_part_of_a_password(options: str) -> None:
    with pytest.raises(CliError) as rejected:
        configured(f"username bob {options}")
    assert "s3cret" not in rejected.value.text


@pytest.mark.parametrize("options", ["privilege 16", "secret", "colour red", "s3cret-of-bob"])
def test_invalid_options(options: str) -> None:
    with pytest.raises(CliError) as rejected:
        configured(f"username bob {options}")
    assert rejected.value.code == 1002


def test_accounts() -> None:
    console = configured("username bob privilege 15 role network-admin nopassword", "username bob ssh-key ssh-rsa AAAA")
    tree = console.cli.run("show users accounts", as_json=True)["users"]
    assert tree == {
        "bob": {
            "username": "bob",
            "role": "network-admin",
            "privLevel": 15,
            "secret": "",
            "sshAuthorizedKey": "ssh-rsa AAAA",
        }
    }
    assert "role: network-admin" in console.type("show users accounts")


def test_a_sanitized_configuration_has_no_secrets() -> None:
    console = configured(
        "username bob secret sha512 $6$hash",
        "enable secret sha512 $6$other",
        "snmp-server community word ro",
        "snmp-server user mon group v3 auth sha apassword priv aes ppassword",
        "ntp authentication-key 7 md5 thekey",
    )
    printed = console.type("show running-config sanitized")
    whole = console.type("show running-config")
    changed = [line for line in printed.splitlines() if line not in whole.splitlines() and not line.startswith("!")]
    engine = console.switch.engine
    assert changed == [
        "enable secret sha512 <removed>",
        "username bob secret sha512 <removed>",
        "snmp-server community <removed> ro",
        f"snmp-server user mon group v3 localized {engine} auth sha <removed> priv aes <removed>",
        "ntp authentication-key 7 md5 <removed>",
    ]
