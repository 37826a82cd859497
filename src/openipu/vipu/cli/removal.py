# SPDX-License-Identifier: GPL-3.0-or-later
"""Removing agents, clusters, allocations and users: one command in four places."""

from __future__ import annotations

import click

from openipu.vipu.cli.grammar import Id, Leaf, command
from openipu.vipu.cli.session import Session


def removal(kind: str, what: str, force: str) -> Leaf:
    """The command; ``what`` is its help, and ``force`` that of its flag."""

    @command("remove", kind)
    @click.argument("id", type=Id(kind))
    @click.option("--force", is_flag=True, help=force)
    def remove(session: Session, id: str, force: bool) -> None:
        from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

        session.call("admin", f"Remove{kind.capitalize()}", admin.RemoveRequest(id=id, force=force))
        session.succeed()

    remove.help = what
    return remove
