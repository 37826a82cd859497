# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for users of a secure controller."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from openipu.shared.vipu.names import ALL_ALLOCATIONS, NO_ALLOCATIONS, ROLE
from openipu.vipu.cli import listing, output
from openipu.vipu.cli.certificates import check_secure, issue, needs_own
from openipu.vipu.cli.grammar import EnumName, Id, Ids, command
from openipu.vipu.cli.removal import removal
from openipu.vipu.cli.session import Session, VipuCommandError

_WITHOUT_SECURE = (
    "this controller runs without --secure. It checks no access keys, and every client that reaches it has all rights, "
    "so users and their allocations restrict nothing."
)


class _Allocations(Ids):
    """Parameter type of the allocations of a user."""

    name = "id,id,…|none"

    def __init__(self) -> None:
        super().__init__("allocation")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the ids as a tuple, which is empty for ``none``."""
        return () if value == NO_ALLOCATIONS else super().convert(value, param, ctx)


@command("create", "user")
@click.argument("id", metavar="NAME", type=Id("user", existing=False))
@click.option(
    "--allocations", type=_Allocations(), help="Allocations that the user may use, or 'none'.  [default: all]"
)
@click.option("--role", type=EnumName(ROLE), help="Role of the user; role admin has all rights.  [default: user]")
@click.option(
    "--certificate/--no-certificate",
    default=None,
    help="Issue a certificate for the user: NAME.crt and NAME.key.  [default: if the user needs its own]",
)
def create_user(
    session: Session, id: str, allocations: tuple[str, ...] | None, role: str | None, certificate: bool | None
) -> None:
    """Create a user.

    Print its access key, which cannot be read again, and write NAME.vipu-cli.hcl in the current folder. Without
    --allocations, the user may use all allocations, also later ones. From its first certificate on, the user can call
    only with certificates of its own. With --no-certificate, a user that needs one cannot log in until
    'create certificate'.
    """
    from openipu.shared.vipu.client import VipuError
    from openipu.shared.vipu.contract import admin
    from openipu.shared.vipu.objects import user_fields
    from openipu.shared.vipu.userfile import write_config

    if certificate:
        check_secure(session, ", or omit --certificate")
    path = f"{id}.vipu-cli.hcl"
    if Path(path).exists():
        raise VipuCommandError(
            f"The file {path!r} exists, and may be the only copy of an access key. "
            "Move it away, or use another folder. Nothing was changed."
        )
    everywhere = allocations is None and role != "admin"
    granted = [ALL_ALLOCATIONS] if everywhere else list(allocations or ())
    spec = admin.UserSpec(**user_fields({"id": id, "role": role, "allocations": granted}))
    reply = session.call("admin", "CreateUser", admin.CreateUserRequest(spec=spec))
    key, failure = reply.access_key, None
    connection = session.client.connection.of_users(reply.user_endpoint)
    try:
        certificate, files, note = _certificate(session, id, path, certificate)
        connection = replace(connection, client_cert=files[0], client_key=files[1])
    except VipuError as error:  # the access key is returned only once, so the file must be written in any case
        failure = error
    try:
        write_config(Path(path), connection, id, key)
    except OSError as error:
        raise VipuCommandError(
            f"The user exists with the access key {key!r}, but the file {path!r} cannot be written "
            f"({error.strerror}). Store the key: it cannot be read again."
        ) from None
    try:
        if failure is not None:
            raise failure
        if certificate:
            issue(session, id)
    except (VipuError, VipuCommandError) as error:
        remedy = f"create certificate {id}"
        raise VipuCommandError(
            f"The user exists, and its file {path!r} was written. Its certificate was not: {error}"
            + ("" if remedy in str(error) else f" Repeat '{remedy}'.")
        ) from None
    if everywhere:
        click.echo(f"Note: user {id!r} may use all allocations. Option --allocations restricts a user.", err=True)
    if note:
        click.echo(f"Note: {note}", err=True)
    session.succeed(
        f"create user ({id}): success. Access key is '{key}'.\n"
        f"vipu configuration file for the user '{id}' written: {path}\n"
        f"Use 'vipu --config {path}' to switch to the user context.",
        access_key=key,
        file=path,
        allocations=granted,
    )


def _certificate(
    session: Session, id: str, path: str, certificate: bool | None
) -> tuple[bool, tuple[str | None, str | None], str]:
    """Return whether to issue a certificate for a new user, the files in its configuration, and a note.

    ``path``: its configuration. ``certificate``: as on the command line. Raises VipuError.
    """
    from openipu.shared.vipu import certificates

    connection = session.client.connection
    if not connection.secure:
        return False, (None, None), _WITHOUT_SECURE
    required = needs_own(session, id)
    if certificate or (certificate is None and required):
        files = certificates.paths(Path(), id)
        return True, (str(files[0]), str(files[1])), ""
    if required:
        return False, (None, None), f"the user cannot log in until 'create certificate {id}'."
    if connection.user_id and needs_own(session, connection.user_id):
        return (
            False,
            (None, None),
            f"set client-cert and client-key in {path!r} to the shared certificate, or run 'create certificate {id}'. "
            "The certificate of the caller is for the caller only.",
        )
    return False, (connection.client_cert, connection.client_key), ""


@command("list", "users")
def list_users(session: Session) -> None:
    """Show all users."""
    found = listing.read(session, "user")
    rows = [(item["id"], item["role"], output.words(item["allocations"])) for item in found]
    session.show(found, output.table(("User", "Role", "Allocations"), rows))


remove_user = removal(
    "user",
    "Remove a user and keep the objects that it created.",
    "Remove the last administrator too, if the controller runs without --secure.",
)
