# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that remove agents, clusters, allocations and users."""

from __future__ import annotations

import click

from openipu.vipu.cli.grammar import Id, Leaf, command
from openipu.vipu.cli.session import Session


def removal(kind: str, help: str, force_help: str) -> Leaf:
    """Return the command that removes objects of a kind."""

    @command("remove", kind)
    @click.argument("id", type=Id(kind))
    @click.option("--force", is_flag=True, help=force_help)
    def remove(session: Session, id: str, force: bool) -> None:
        from openipu.shared.vipu.contract import admin
        from openipu.shared.vipu.names import KIND

        reply = session.call("admin", f"Remove{kind.capitalize()}", admin.RemoveRequest(id=id, force=force))
        removed = [{"kind": KIND.text(item.kind), "id": item.id} for item in reply.removed]
        also = [item for item in removed if item != {"kind": kind, "id": id}]
        names = ", ".join(f"{item['kind']} {item['id']}" for item in also)
        session.succeed(addition=f"Also removed: {names}." if also else "", also_removed=also)

    remove.help = help
    return remove
