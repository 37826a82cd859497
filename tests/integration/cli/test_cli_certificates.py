# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for certificates of users."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import grpc

from tests.integration.cli.cli_support import Cli, cells
from tests.integration.vipu_servers import Process, run

ADMIN = "vipu-admin --config admin.vipu-cli.hcl"
ALICE = "vipu --config alice.vipu-cli.hcl list partitions"


def test_life_of_a_certificate(vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    certs = tmp_path / "vipu-certs"
    made = run("--tls-init", str(certs), "--init", "--secure", "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    server = vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())
    cli = Cli(tmp_path, server.address)

    cli.out(f"{ADMIN} create user alice --allocations none")
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

    assert "is too short for a fingerprint" in cli.failed(f"{ADMIN} remove certificate alice {first['key'][:7]}")
    cli.out(f"{ADMIN} remove certificate alice {first['key'][:8]}")
    assert "the certificate is not one of this user, or was revoked" in cli.failed(ALICE)
    assert "The key 'alice.key' was revoked. Remove the file" in cli.failed(f"{ADMIN} create certificate alice")
    key.unlink()
    cli.out(f"{ADMIN} create certificate alice")
    cli.out(ALICE)
    assert [each["revoked"] for each in cli.json(f"{ADMIN} list certificates alice")] == [True, False]
    table = cli.out(f"{ADMIN} list certificates alice")
    assert first["key"] in table and "PRIVATE" not in table
    all_users = cells(cli.out(f"{ADMIN} list certificates"))
    assert all_users[0] == ["User", "Key fingerprint", "Serial number", "Valid until", "Revoked"]
    assert [row[0] for row in all_users[1:]] == ["admin", "alice", "alice"]

    # A user without a certificate cannot call, until one is registered. No other user can have it too.
    made = cli(f"{ADMIN} create user bob --allocations none --no-certificate")
    assert made.stderr == "Note: the user cannot log in until 'create certificate bob'.\n"
    file = (tmp_path / "bob.vipu-cli.hcl").read_text()
    assert ("ca-path" in file, "client-" in file) == (True, False)
    assert "requires a client certificate" in cli.failed("vipu --config bob.vipu-cli.hcl list partitions")
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

    # A file of a user is never overwritten, and a revoked key stays revoked.
    before = (tmp_path / "alice.vipu-cli.hcl").read_text()
    assert "The file 'alice.vipu-cli.hcl' exists" in cli.failed(f"{ADMIN} create user alice")
    assert "alice" not in cli.out(f"{ADMIN} list users")
    (tmp_path / "alice.vipu-cli.hcl").unlink()
    key.write_text(old_key)
    assert "The key 'alice.key' was revoked. Remove the file, and run 'create certificate alice' for a new key." in (
        cli.failed(f"{ADMIN} create user alice")
    )
    key.unlink()
    cli.out(f"{ADMIN} create certificate alice")
    assert (tmp_path / "alice.vipu-cli.hcl").read_text() != before
    cli.out(ALICE)
    assert [each["revoked"] for each in cli.json(f"{ADMIN} list certificates alice")] == [True, False]


def test_a_rejected_certificate_leaves_no_key(vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    certs = tmp_path / "vipu-certs"
    made = run("--tls-init", str(certs), "--init", "--secure", "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    shutil.rmtree(certs / "users")
    server = vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())
    cli = Cli(tmp_path, server.address)
    assert "user 'mallory' does not exist" in cli.failed(f"{ADMIN} create certificate mallory")
    assert "there is no authority of users" in cli.failed(f"{ADMIN} create certificate admin")
    assert not list(tmp_path.glob("*.key"))


def test_a_controller_that_is_not_secure_issues_no_certificates(
    vipu_process: Callable[..., Process], tmp_path: Path
) -> None:
    """The commands change nothing."""
    run("--init", "--database", str(tmp_path / "vipu-server.db"))
    cli = Cli(tmp_path, vipu_process().address)
    reason = "This controller runs without --secure, and issues no certificates. Start vipu-server with --secure"
    assert reason in cli.failed("vipu-admin create user alice --certificate")
    assert cli.json("vipu-admin list users") == []
    cli("vipu-admin create user bob")
    assert reason in cli.failed("vipu-admin create certificate bob")
    assert sorted(path.name for path in tmp_path.glob("*.*") if ".db" not in path.name) == ["bob.vipu-cli.hcl"]


def test_a_shared_certificate(vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    """An option allows it for new users. Each one that gets its own certificate needs it from then on."""
    certs, shared = tmp_path / "vipu-certs", "--client-certificates=shared"
    made = run("--tls-init", str(certs), "--init", "--secure", shared, "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    server = vipu_process("--secure", "--certs", str(certs), shared, channel=grpc.ssl_channel_credentials())
    cli = Cli(tmp_path, server.address)
    cli.out(f"{ADMIN} create user alice --allocations none")
    assert not (tmp_path / "alice.crt").exists()
    cli.out(ALICE)
    # From its own certificate on, the administrator has no shared one to put into the files of users.
    cli.out(f"{ADMIN} create certificate admin")
    note = cli(f"{ADMIN} create user dave --allocations none").stderr
    assert note.startswith("Note: set client-cert and client-key in 'dave.vipu-cli.hcl' to the shared certificate")
    dave = tmp_path / "dave.vipu-cli.hcl"
    assert "client-" not in dave.read_text()
    client = certs / "client" / "client"
    cli.out(f"vipu --config {dave} --client-cert {client}.crt --client-key {client}.key list partitions")
    assert server.stop() == 0
    log = "".join(server.errors)
    assert "new users share certificates, which cannot be revoked for one of them; see --client-certificates" in log

    # Users keep the shared certificate without the option, and the log has their names.
    again = vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())
    cli = Cli(tmp_path, again.address)
    at = ("--api-port", again.address.rpartition(":")[2])
    cli.out(ALICE, *at)
    cli.out(f"{ADMIN} create user bob --allocations none", *at)
    cli.out("vipu --config bob.vipu-cli.hcl list partitions", *at)
    before = (tmp_path / "alice.vipu-cli.hcl").read_text()
    assert "Configuration updated: alice.vipu-cli.hcl" in cli.out(f"{ADMIN} create certificate alice", *at)
    cli.out(ALICE, *at)
    (tmp_path / "alice.vipu-cli.hcl").write_text(before)
    assert "was revoked" in cli.failed(ALICE, *at)
    assert again.stop() == 0
    log = "".join(again.errors)
    assert "users share certificates" in log and "users='alice dave'" in log
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
    empty = tmp_path / "empty" / "vipu.db"
    empty.parent.mkdir()
    without = run("--init", "--secure", "--certs", str(tmp_path / "none"), "--database", str(empty))
    assert "it needs a certificate, and the folder of --certs has no client/client.crt." in without.stderr
    assert "there is no user 'admin'" in run("admin-certificate", "--database", str(empty), str(other)).stderr
