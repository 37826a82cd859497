# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for certificates of users, with a controller that requires them."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import grpc

from tests.integration.cli.cli_support import Cli
from tests.integration.vipu_servers import Process, run

ADMIN = "vipu-admin --config admin.vipu-cli.hcl"
ALICE = "vipu --config alice.vipu-cli.hcl list partitions"


def test_life_of_a_certificate(vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    certs, own = tmp_path / "vipu-certs", "--client-certificates=user"
    where = ("--certs", str(certs), "--database", str(tmp_path / "vipu-server.db"))
    made = run("--tls-init", str(certs), "--init", "--secure", own, *where)
    assert made.returncode == 0, made.stderr
    server = vipu_process("--secure", "--certs", str(certs), own, channel=grpc.ssl_channel_credentials())
    cli = Cli(tmp_path, server.address)

    cli.out(f"{ADMIN} create user alice --certificate")
    key, certificate = tmp_path / "alice.key", tmp_path / "alice.crt"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    cli.out(ALICE)
    (first,) = cli.json(f"{ADMIN} list certificates alice")
    assert (first["revoked"], len(first["key"])) == (False, 64)

    old_key, old_certificate = key.read_text(), certificate.read_text()
    assert "Files written: alice.crt and alice.key" in cli.out(f"{ADMIN} create certificate alice")
    (renewed,) = cli.json(f"{ADMIN} list certificates alice")
    assert (key.read_text(), renewed["key"]) == (old_key, first["key"])
    assert certificate.read_text() != old_certificate and renewed["serial"] != first["serial"]
    cli.out(ALICE)

    cli.out(f"{ADMIN} remove certificate alice {first['key']}")
    assert "the certificate is not one of this user, or was revoked" in cli.failed(ALICE)
    assert "its key was revoked. Use a new key." in cli.failed(f"{ADMIN} create certificate alice")
    key.unlink()
    cli.out(f"{ADMIN} create certificate alice")
    cli.out(ALICE)
    assert [each["revoked"] for each in cli.json(f"{ADMIN} list certificates alice")] == [True, False]
    table = cli.out(f"{ADMIN} list certificates alice")
    assert first["key"] in table and "PRIVATE" not in table

    # A user without a certificate cannot call, until one is registered. No other user can have it too.
    cli.out(f"{ADMIN} create user bob")
    bob = "vipu --config bob.vipu-cli.hcl list partitions"
    assert "Cannot log in" in cli.failed(bob)
    assert "another user has a certificate with its key" in cli.failed(
        f"{ADMIN} create certificate bob --file alice.crt"
    )
    client = certs / "client" / "client.crt"
    assert "another user has" in cli.failed(f"{ADMIN} create certificate bob --file {client}")
    cli.out(f"{ADMIN} create certificate bob --file {certs / 'controller' / 'controller.crt'}")
    assert "it is the last one of the last administrator" in cli.failed(
        f"{ADMIN} remove certificate admin {cli.json(f'{ADMIN} list certificates admin')[0]['key']}"
    )
    cli.out(f"{ADMIN} remove user alice")
    cli.out(f"{ADMIN} create certificate bob --file alice.crt")
