# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for users of a secure controller."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from openipu.shared.vipu.names import ROLE
from openipu.vipu.cli import listing, output
from openipu.vipu.cli.certificates import issue, needs_own
from openipu.vipu.cli.grammar import EnumName, Id, Ids, command
from openipu.vipu.cli.removal import removal
from openipu.vipu.cli.session import Session, VipuCommandError


@command("create", "user")
@click.argument("id", metavar="NAME", type=Id("user", existing=False))
@click.option("--allocations", type=Ids("allocation"), help="Allocations that the user may use.")
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

    Print its access key, which cannot be read again, and write NAME.vipu-cli.hcl in the current folder. From its
    first certificate on, the user can call only with certificates of its own.
    """
    from openipu.shared.vipu import certificates
    from openipu.shared.vipu.client import VipuError
    from openipu.shared.vipu.contract import admin
    from openipu.shared.vipu.userfile import write_config

    spec = admin.UserSpec(id=id, role=ROLE.number(role), allocation_ids=allocations or ())
    key = session.call("admin", "CreateUser", admin.CreateUserRequest(spec=spec)).access_key
    path = f"{id}.vipu-cli.hcl"
    connection = session.client.connection
    if certificate is None and connection.secure:
        certificate = needs_own(session, id)
    if certificate:
        client_cert, client_key = certificates.paths(Path(), id)
        connection = replace(connection, client_cert=str(client_cert), client_key=str(client_key))
    try:
        write_config(Path(path), connection, id, key)
    except OSError as error:
        raise VipuCommandError(
            f"The user exists with the access key {key!r}, but the file {path!r} cannot be written "
            f"({error.strerror}). Store the key: it cannot be read again."
        ) from None
    if certificate:
        try:
            issue(session, id)
        except (VipuError, VipuCommandError) as error:
            raise VipuCommandError(
                f"The user exists, and its file {path!r} was written. Its certificate was not: {error} "
                f"Repeat 'create certificate {id}'."
            ) from None
    if not session.client.connection.secure:
        click.echo("Note: this controller runs without --secure and does not check access keys.", err=True)
    session.succeed(
        f"create user ({id}): success. Access key is '{key}'.\n"
        f"vipu configuration file for the user '{id}' written: {path}\n"
        f"Use 'vipu --config {path}' to switch to the user context.",
        access_key=key,
        file=path,
    )


@command("list", "users")
def list_users(session: Session) -> None:
    """Show all users."""
    found = listing.read(session, "user")
    rows = [(item["id"], item["role"], output.words(item["allocations"])) for item in found]
    session.show(found, output.table(("User", "Role", "Allocations"), rows))


remove_user = removal("user", "Remove a user and keep the objects that it created.", "Accepted, without effect.")
