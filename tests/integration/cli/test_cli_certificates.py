# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for certificates of users."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import grpc

from tests.integration.cli.cli_support import Cli
from tests.integration.vipu_servers import Process, run

ADMIN = "vipu-admin --config admin.vipu-cli.hcl"
ALICE = "vipu --config alice.vipu-cli.hcl list partitions"


def test_life_of_a_certificate(vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    certs = tmp_path / "vipu-certs"
    made = run("--tls-init", str(certs), "--init", "--secure", "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    server = vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())
    cli = Cli(tmp_path, server.address)

    cli.out(f"{ADMIN} create user alice")
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
    cli.out(f"{ADMIN} create user bob --no-certificate")
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


def test_a_shared_certificate(vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    """An option allows it for new users. Each one that gets its own certificate needs it from then on."""
    certs, shared = tmp_path / "vipu-certs", "--client-certificates=shared"
    made = run("--tls-init", str(certs), "--init", "--secure", shared, "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    server = vipu_process("--secure", "--certs", str(certs), shared, channel=grpc.ssl_channel_credentials())
    cli = Cli(tmp_path, server.address)
    cli.out(f"{ADMIN} create user alice")
    assert not (tmp_path / "alice.crt").exists()
    cli.out(ALICE)
    assert server.stop() == 0
    log = "".join(server.errors)
    assert "new users share certificates, which cannot be revoked for one of them; see --client-certificates" in log

    # Users keep the shared certificate without the option, and the log has their names.
    again = vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())
    cli = Cli(tmp_path, again.address)
    at = ("--api-port", again.address.rpartition(":")[2])
    cli.out(ALICE, *at)
    cli.out(f"{ADMIN} create user bob", *at)
    cli.out("vipu --config bob.vipu-cli.hcl list partitions", *at)
    before = (tmp_path / "alice.vipu-cli.hcl").read_text()
    assert "Configuration updated: alice.vipu-cli.hcl" in cli.out(f"{ADMIN} create certificate alice", *at)
    cli.out(ALICE, *at)
    (tmp_path / "alice.vipu-cli.hcl").write_text(before)
    assert "was revoked" in cli.failed(ALICE, *at)
    assert again.stop() == 0
    log = "".join(again.errors)
    assert "users share certificates" in log and "users='admin alice'" in log
    assert "new users share" not in log


def test_an_authority_that_issues_no_certificates(vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    """A user is created without a certificate, and the message has the remedy."""
    certs = tmp_path / "vipu-certs"
    made = run("--tls-init", str(certs), "--init", "--secure", "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    for folder in ("ca", "users"):
        shutil.rmtree(certs / folder)
    server = vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())
    cli = Cli(tmp_path, server.address)
    message = cli.failed(f"{ADMIN} create user alice")
    assert "The user exists, and its file 'alice.vipu-cli.hcl' was written. Its certificate was not: " in message
    assert "register a certificate with 'vipu-admin create certificate --file'" in message


def test_recovery_of_the_administrator(vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    """With other certificates, the administrator is registered while the controller is stopped."""
    certs, database = tmp_path / "vipu-certs", str(tmp_path / "vipu-server.db")
    made = run("--tls-init", str(certs), "--init", "--secure", "--database", database)
    assert made.returncode == 0, made.stderr
    old = certs.rename(tmp_path / "old") / "client" / "client.crt"
    run("--tls-init", str(certs))
    command = ("admin-certificate", "--database", database, "--certs", str(certs))
    other = certs / "controller" / "controller.crt"
    assert f"Nothing to register: {other} is no certificate" in run(*command, "--replaces", str(other)).stdout
    lists = f"{ADMIN} list users"
    server = vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())
    assert "was revoked" in Cli(tmp_path, server.address).failed(lists, "--api-port", server.address.rpartition(":")[2])
    assert "another vipu-server uses it" in run(*command).stderr
    server.stop()
    registered = run(*command, "--replaces", str(old))
    assert registered.stdout == f"Certificate of the user 'admin' registered: {certs}/client/client.crt\n"
    assert "already" in run(*command).stdout
    server = vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())
    Cli(tmp_path, server.address).out(lists, "--api-port", server.address.rpartition(":")[2])
    server.stop()
    empty = tmp_path / "empty.db"
    without = run("--init", "--secure", "--certs", str(tmp_path / "none"), "--database", str(empty))
    assert "it needs a certificate, and the folder of --certs has no client/client.crt." in without.stderr
    assert "there is no user 'admin'" in run("admin-certificate", "--database", str(empty), str(other)).stderr
