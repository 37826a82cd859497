# SPDX-License-Identifier: GPL-3.0-or-later
"""Renewal and checks of the certificates of a controller."""

from __future__ import annotations

import datetime
import shutil
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from openipu.vipu.tls import issue, renew
from tests.integration.vipu.maintenance_support import DAY, Start, mode
from tests.integration.vipu_servers import (
    run,
)


def shown(address: str, certs: Path) -> x509.Certificate:
    """Return the certificate that a controller presents."""
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=str(certs / "client" / "ca.crt"))
    context.load_cert_chain(certs / "client" / "client.crt", certs / "client" / "client.key")
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, int(port)), 10) as plain,
        context.wrap_socket(plain, server_hostname=host) as s,
    ):
        return x509.load_der_x509_certificate(s.getpeercert(binary_form=True) or b"")


def test_certificates_are_renewed_under_a_running_controller(vipu_process: Start, certs: Path) -> None:
    server = vipu_process("--secure", "--certs", str(certs))
    old = shown(server.address, certs)
    options = ("renew", "--certs", str(certs), "--tls-days", "90")
    not_due = run(*options, "--within", "4")
    assert not_due.stdout.startswith("Nothing to renew: all are valid until "), not_due.stderr
    dry_run = run(*options, "--dry-run")
    assert [line.split(",")[0] for line in dry_run.stdout.splitlines()] == [
        "Would renew: server",
        "Would renew: client",
        "Would renew: controller",
    ]
    assert shown(server.address, certs) == old
    renewed = run(*options)
    assert [line.split(",")[0] for line in renewed.stdout.splitlines()] == [
        "Renewed: server",
        "Renewed: client",
        "Renewed: controller",
    ]
    new = shown(server.address, certs)
    assert new.not_valid_after_utc - old.not_valid_after_utc > 80 * DAY
    assert new.public_key() == old.public_key()
    health = (
        "health",
        "--secure",
        "--certs",
        str(certs),
        "--host",
        "127.0.0.1",
        "--port",
        server.address.split(":")[1],
    )
    assert run(*health).returncode == 0
    assert run(*options).stdout.startswith("Nothing to renew")


def test_an_invalid_replacement_certificate_is_not_used(vipu_process: Start, certs: Path, tmp_path: Path) -> None:
    server = vipu_process("--secure", "--certs", str(certs))
    good = shown(server.address, certs)
    issue.create(tmp_path / "other", ["127.0.0.1"])
    shutil.copy(tmp_path / "other" / "server" / "server.crt", certs / "server" / "server.crt")
    assert shown(server.address, certs) == good
    assert server.stop() == 0
    (error,) = [line for line in server.errors if "cannot use new certificates" in line]
    assert "server.key': it does not match certificate" in error


def test_renewal_with_other_names(certs: Path) -> None:
    options = ("renew", "--certs", str(certs), "--host", "127.0.0.1")
    assert run(*options, "--within", "0").stdout.startswith("Nothing to renew")
    renewed = run(*options, "--within", "0", "--tls-san", "pod.example", "--tls-san", "10.3.1.101")
    assert renewed.stdout.startswith("Renewed: server, until "), renewed.stderr
    certificate = x509.load_pem_x509_certificate((certs / "server" / "server.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["127.0.0.1", "localhost", "::1", "pod.example", "10.3.1.101"]
    assert mode(certs / "server" / "server.crt") == 0o644
    assert run(*options, "--within", "0").stdout.startswith("Nothing to renew"), "the certificate keeps its names"


def test_a_renewed_authority_keeps_its_key_and_old_clients_trust_it(
    vipu_process: Start, certs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(certs)
    monkeypatch.setattr(issue, "AUTHORITY_VALIDITY", 20 * DAY)
    issue.create(certs, ["127.0.0.1"], 20 * DAY)
    monkeypatch.undo()
    shutil.copytree(certs, tmp_path / "as-before")
    server = vipu_process("--secure", "--certs", str(certs))
    assert list(renew.renew(certs, 30 * DAY)) == ["ca", "users", "server", "client", "controller"]
    ca, users, server_ca, client_ca = (
        (certs / role / "ca.crt").read_bytes() for role in ("ca", "users", "server", "client")
    )
    assert (server_ca, client_ca) == (ca + users, ca)
    for client in (tmp_path / "as-before", certs):
        assert shown(server.address, client).not_valid_after_utc > datetime.datetime.now(datetime.UTC) + 800 * DAY


def test_certificates_are_checked_before_use(certs: Path, tmp_path: Path) -> None:
    def checked(host: str = "127.0.0.1") -> str:
        done = run("certificates", "--certs", str(certs), "--host", host)
        return done.stdout + done.stderr

    assert checked().startswith(f"Usable: {certs}, until ")
    server = certs / "server" / "server.crt"
    assert checked("10.3.1.101").startswith(
        f"Error OPU614: Cannot use certificate '{server}' for 10.3.1.101: ip address "
    )
    issue.create(tmp_path / "other", ["127.0.0.1"])
    shutil.copytree(tmp_path / "other" / "client", certs / "client", dirs_exist_ok=True)
    shutil.copy(certs / "server" / "ca.crt", certs / "client" / "ca.crt")
    assert checked().startswith(
        f"Error OPU614: Cannot use certificate '{certs / 'client' / 'client.crt'}' for 127.0.0.1: "
    )
    shutil.copy(tmp_path / "other" / "server" / "server.crt", server)
    assert "server.key': it does not match certificate" in checked()


def test_a_renewal_adds_the_authority_of_users(certs: Path, tmp_path: Path) -> None:
    """Folders of earlier releases have none. Servers accept its clients too, even after an interrupted renewal."""
    users = shutil.move(certs / "users", tmp_path / "made-before")
    shutil.copy(certs / "client" / "ca.crt", certs / "server" / "ca.crt")
    options = ("renew", "--certs", str(certs), "--within", "1")
    assert run(*options, "--dry-run").stdout.startswith("Would renew: users, until ")
    assert not (certs / "users").exists()
    assert run(*options).stdout.startswith("Renewed: users, until ")
    assert mode(certs / "users" / "ca.key") == 0o600
    both = (certs / "client" / "ca.crt").read_bytes() + (certs / "users" / "ca.crt").read_bytes()
    assert (certs / "server" / "ca.crt").read_bytes() == both
    shutil.copy(certs / "client" / "ca.crt", certs / "server" / "ca.crt")
    assert run(*options).stdout.startswith("Nothing to renew")
    assert (certs / "server" / "ca.crt").read_bytes() == both
    assert Path(users).is_dir()


def test_an_interrupted_renewal_of_the_authority_is_repeated(certs: Path) -> None:
    """Clients that keep the old certificate of the authority reject the server after its end."""
    _, key = renew.authority(certs)
    old = issue.pem(issue.authority(issue.AUTHORITY, key, 10 * DAY))
    files = [certs / role / "ca.crt" for role in ("client", "controller", "ca")]
    for file in files:
        file.write_bytes(old)
    files[1].unlink()
    files[1].mkdir()  # cannot be replaced by a file
    assert run("renew", "--certs", str(certs)).stderr.startswith(f"Error OPU614: Cannot write certificate '{files[1]}'")
    files[1].rmdir()
    files[1].write_bytes(old)
    assert run("renew", "--certs", str(certs)).stdout.startswith("Renewed: ca, until ")
    assert old not in [file.read_bytes() for file in files]
    assert len({file.read_bytes() for file in files}) == 1
    assert run("certificates", "--certs", str(certs), "--host", "127.0.0.1").stdout.startswith("Usable: ")


def test_certificates_of_other_authorities_are_not_renewed(certs: Path) -> None:
    shutil.rmtree(certs / "ca")
    rejected = run("renew", "--certs", str(certs))
    assert rejected.returncode == 1
    assert rejected.stderr == (
        f"Error OPU614: Cannot read '{certs / 'ca' / 'ca.key'}': No such file or directory. Only certificates of "
        "'vipu-server --tls-init' can be renewed here. Renew others at their issuer.\n"
    )
