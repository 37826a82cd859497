# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for the client certificates of users."""

from __future__ import annotations

from pathlib import Path

import click

from openipu.vipu.cli import output
from openipu.vipu.cli.grammar import Id, command
from openipu.vipu.cli.session import Session, VipuCommandError


def needs_own(session: Session, user: str) -> bool:
    """Return whether a user can call only with certificates of its own. Raises VipuError."""
    from openipu.shared.vipu.contract import admin

    reply = session.call("admin", "ListCertificates", admin.ListCertificatesRequest(user_id=user))
    return bool(reply.required)


def issue(session: Session, user: str) -> tuple[Path, Path]:
    """Issue a certificate for the key in USER.key, which is created if it does not exist.

    Write USER.crt. Return the files of certificate and key. Raises VipuError and VipuCommandError.
    """
    from openipu.shared.atomic_files import write_private
    from openipu.shared.vipu import certificates
    from openipu.shared.vipu.contract import admin

    certificate, key = certificates.paths(Path(), user)
    try:
        request = certificates.signing_request(key, user)
    except OSError as error:
        raise VipuCommandError(f"The key {str(key)!r} cannot be used: {error.strerror}.") from None
    except (ValueError, TypeError):
        raise VipuCommandError(
            f"The key {str(key)!r} cannot be used: it is not an unencrypted elliptic curve key. Remove the file."
        ) from None
    reply = session.call("admin", "AddCertificate", admin.AddCertificateRequest(user_id=user, signing_request=request))
    try:
        write_private(certificate, reply.certificate.decode())
    except OSError as error:
        raise VipuCommandError(
            f"The certificate was issued, but the file {str(certificate)!r} cannot be written ({error.strerror}). "
            "Repeat 'create certificate'."
        ) from None
    return certificate, key


@command("create", "certificate")
@click.argument("id", metavar="USER", type=Id("user"))
@click.option("--file", type=click.Path(path_type=Path), help="Certificate to register, PEM. Omit to issue one.")
def create_certificate(session: Session, id: str, file: Path | None) -> None:
    """Create, renew or register a certificate.

    From now on, the user can call only with certificates of its own. Write USER.crt, and USER.key for a new key.
    An existing USER.key is used again, for a renewal. An existing USER.vipu-cli.hcl refers to these files then.
    """
    from openipu.shared.vipu.contract import admin
    from openipu.shared.vipu.userfile import set_certificate

    if file is None:
        certificate, key = issue(session, id)
        config = Path(f"{id}.vipu-cli.hcl")
        updated = set_certificate(config, certificate, key, check_mode=False)
        session.succeed(
            f"{output.success(f'create certificate ({id})')}\nFiles written: {certificate} and {key}"
            + (f"\nConfiguration updated: {config}" if updated else ""),
            client_cert=str(certificate),
            client_key=str(key),
        )
        return
    try:
        pem = file.read_bytes()
    except OSError as error:
        raise VipuCommandError(f"The file {str(file)!r} cannot be read: {error.strerror}.") from None
    session.call("admin", "AddCertificate", admin.AddCertificateRequest(user_id=id, certificate=pem))
    session.succeed()


@command("list", "certificates")
@click.argument("id", metavar="USER", type=Id("user"))
def list_certificates(session: Session, id: str) -> None:
    """Show the certificates of a user."""
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.contract import admin

    reply = session.call("admin", "ListCertificates", admin.ListCertificatesRequest(user_id=id))
    found = [objects.certificate(each) for each in reply.certificates]
    rows = [(each["key"], each["serial"], each["valid_until"], "yes" if each["revoked"] else "no") for each in found]
    session.show(found, output.table(("Key", "Serial number", "Valid until", "Revoked"), rows))


@command("remove", "certificate")
@click.argument("id", metavar="USER", type=Id("user"))
@click.argument("key")
def remove_certificate(session: Session, id: str, key: str) -> None:
    """Revoke a certificate.

    KEY is the fingerprint of its key in the list. The next call with the certificate is rejected, also after a
    renewal with the same key.
    """
    from openipu.shared.vipu.contract import admin

    session.call("admin", "RevokeCertificate", admin.RevokeCertificateRequest(user_id=id, key=key))
    session.succeed()
