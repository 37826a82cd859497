# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for the client certificates of users."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from openipu.vipu.cli import listing, output
from openipu.vipu.cli.grammar import Id, command
from openipu.vipu.cli.session import Session, VipuCommandError

_COLUMNS = ("Key fingerprint", "Serial number", "Valid until", "Revoked")
_REVOKED = "its key was revoked"  # in the message of the controller


def needs_own(session: Session, user: str) -> bool:
    """Return whether a user can call only with their own certificates. Raises VipuError."""
    from openipu.shared.vipu.contract import admin

    reply = session.call("admin", "ListCertificates", admin.ListCertificatesRequest(user_id=user))
    return bool(reply.required)


def check_secure(session: Session, remedy: str = "") -> None:
    """Raise VipuCommandError when the controller issues no certificates, because it has no TLS."""
    if not session.client.connection.secure:
        raise VipuCommandError(
            "This controller runs without --secure, and issues no certificates. "
            f"Start vipu-server with --secure{remedy}. Nothing was changed."
        )


def issue(session: Session, user: str) -> tuple[Path, Path]:
    """Issue a certificate for the key in USER.key, which is created if it does not exist.

    Write USER.crt. Return the files of certificate and key. A new key is removed again if the controller rejects the
    request. Raises VipuError and VipuCommandError.
    """
    from openipu.shared.vipu import certificates
    from openipu.shared.vipu.client import VipuError

    certificate, key = certificates.paths(Path(), user)
    existed = key.exists()
    try:
        with certificates.discarding_new_key(key):
            return _issue(session, user, certificate, key), key
    except VipuError as error:
        if existed and _REVOKED in error.message:
            raise VipuCommandError(
                f"The key {str(key)!r} was revoked. Remove the file, and run 'create certificate {user}' for a new key."
            ) from None
        raise


def _issue(session: Session, user: str, certificate: Path, key: Path) -> Path:
    from openipu.shared.atomic_files import write_private
    from openipu.shared.vipu import certificates
    from openipu.shared.vipu.contract import admin

    try:
        request = certificates.signing_request(key, user)
    except OSError as error:
        raise VipuCommandError(
            f"Cannot use key {str(key)!r}: {error.strerror}. Check the path and its permissions."
        ) from None
    except (ValueError, TypeError):
        raise VipuCommandError(
            f"Cannot use key {str(key)!r}: it is not an unencrypted elliptic curve key. Remove the file."
        ) from None
    reply = session.call("admin", "AddCertificate", admin.AddCertificateRequest(user_id=user, signing_request=request))
    try:
        write_private(certificate, reply.certificate.decode())
    except OSError as error:
        raise VipuCommandError(
            f"The certificate was issued, but the file {str(certificate)!r} cannot be written ({error.strerror}). "
            "Repeat 'create certificate'."
        ) from None
    return certificate


@command("create", "certificate")
@click.argument("id", metavar="USER", type=Id("user"))
@click.option("--file", type=click.Path(path_type=Path), help="Certificate to register, PEM. Omit to issue one.")
def create_certificate(session: Session, id: str, file: Path | None) -> None:
    """Create, renew or register a certificate.

    From now on, the user can call only with their own certificates. A certificate that others share is rejected.
    Write USER.crt, and USER.key for a new key.
    An existing USER.key is used again, for a renewal. An existing USER.vipu-cli.hcl refers to these files then.
    """
    from openipu.shared.vipu.contract import admin
    from openipu.shared.vipu.userfile import set_certificate

    if file is None:
        check_secure(session)
        needs_own(session, id)  # fails for an unknown user, before a key is made
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
        raise VipuCommandError(
            f"Cannot read certificate {str(file)!r}: {error.strerror}. Check the path and its permissions."
        ) from None
    session.call("admin", "AddCertificate", admin.AddCertificateRequest(user_id=id, certificate=pem))
    session.succeed()


@command("list", "certificates")
@click.argument("id", metavar="[USER]", required=False, type=Id("user"))
def list_certificates(session: Session, id: str | None) -> None:
    """Show the certificates of a user, or of all users."""
    if id is not None:
        found = _certificates(session, id)
        session.show(found, output.table(_COLUMNS, map(_row, found)))
        return
    of_users = {user: _certificates(session, user) for user in listing.ids(session, "user")}
    rows = [(user, *_row(each)) for user, found in of_users.items() for each in found]
    everything = [{"user": user, **each} for user, found in of_users.items() for each in found]
    session.show(everything, output.table(("User", *_COLUMNS), rows))


def _certificates(session: Session, user: str) -> list[dict[str, Any]]:
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.contract import admin

    reply = session.call("admin", "ListCertificates", admin.ListCertificatesRequest(user_id=user))
    return [objects.certificate(each) for each in reply.certificates]


def _row(certificate: dict[str, Any]) -> tuple[str, ...]:
    revoked = "yes" if certificate["revoked"] else "no"
    return certificate["key"], certificate["serial"], certificate["valid_until"], revoked


@command("remove", "certificate")
@click.argument("id", metavar="USER", type=Id("user"))
@click.argument("key", metavar="FINGERPRINT")
def remove_certificate(session: Session, id: str, key: str) -> None:
    """Revoke a certificate.

    FINGERPRINT is the key fingerprint in the list, or its first digits (at least 8). The next call with the
    certificate is rejected, even after a renewal with the same key.
    """
    from openipu.shared.vipu.contract import admin

    session.call("admin", "RevokeCertificate", admin.RevokeCertificateRequest(user_id=id, key=key))
    session.succeed()
