# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that show changes until they are interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import click

from openipu.vipu.cli import output
from openipu.vipu.cli.grammar import Id, Leaf, command
from openipu.vipu.cli.interruption import Interruption
from openipu.vipu.cli.session import Session

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0  # seconds between attempts to connect
# Status codes after which the stream can continue at its revision.
_INTERRUPTED = frozenset({"UNAVAILABLE", "CANCELLED"})

Line = dict[str, Any]


def events(session: Session, service: str, since: int, interruption: Interruption, **filters: Any) -> Iterator[Line]:
    """Yield events, bookmarks and resets as objects until the interruption. Raises VipuError.

    Connect again when the connection is lost.

    Events are held back until all of their revision have arrived, so that no event appears twice.
    """
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.client import VipuError
    from openipu.shared.vipu.contract import admin

    revision, served, connected, pause = since, False, False, _FIRST_PAUSE
    while not interruption.received:
        request = admin.WatchRequest(since_revision=revision, **filters)
        held: list[Line] = []
        try:
            for reply in session.client.watch(service, request, session.action, interruption.cancels):
                served, connected, pause = True, True, _FIRST_PAUSE
                held += [objects.event(event) for event in reply.events]
                if reply.revision:
                    revision = reply.revision
                    yield from held
                    yield {"type": "bookmark", "revision": revision}
                    held.clear()
        except VipuError as error:
            if interruption.received:
                return
            if error.code == "OUT_OF_RANGE" and revision:
                click.echo(f"{error.message} Listing all objects.", err=True)
                revision = 0
                yield {"type": "reset"}
                continue
            if error.code not in _INTERRUPTED or not served:
                raise
            if connected:
                click.echo(f"{error.message} Trying again.", err=True)
                connected = False
        interruption.pause(pause)  # doubles with each failed attempt, so that many clients do not flood a controller
        pause = min(2 * pause, _LONGEST_PAUSE)


def show(session: Session, lines: Iterator[Line]) -> None:
    """Print events: one JSON object per line, or one line of text."""
    for line in lines:
        if session.json:
            click.echo(json.dumps(line))
        elif "id" in line:
            click.echo(text(line))


def text(line: Line) -> str:
    """Return the line of an event: revision, type, kind, id, and the state of a partition or members of a group."""
    found = line["object"] or {}
    details: dict[str, Callable[[], str]] = {
        "agent": lambda: f"{found['host']}:{found['port']}",
        "cluster": lambda: output.words(found["agents"]),
        "allocation": lambda: f"{output.words(found['agents'])} ({found['free_ipus']} free IPUs)",
        "partition": lambda: " ".join([found["state"], found["operation"], *found["errors"]]),
        "user": lambda: " ".join([found["role"], *found["allocations"]]),
    }
    cells = [str(line["revision"]), line["type"], line["kind"], line["id"]]
    if found:
        cells.append(details[line["kind"]]().replace("\n", " "))
    return output.printable(" | ".join(cells))


def _watch(noun: str, service: str, help: str, kind: str = "") -> Leaf:
    """Return the command that watches one kind of objects, or all kinds."""
    from openipu.shared.vipu.names import KIND

    chosen = [KIND.number(kind)] if kind else []

    def watch(session: Session, id: str | None = None, allocation: str | None = None, since: int | None = None) -> None:
        filters = {"kinds": chosen, "ids": [id] if id else [], "allocation_id": allocation or ""}
        show(session, events(session, service, since or 0, Interruption(), **filters))

    made = command("watch", noun)(watch)
    if kind:
        click.argument("id", type=Id(kind, existing=True), required=False)(made)
    if kind in ("", "allocation", "partition"):
        click.option("--allocation", type=Id("allocation"), help="Only objects of this allocation.")(made)
    click.option(
        "--since",
        type=click.IntRange(min=1),
        metavar="REVISION",
        help="Show the changes after this revision. Omit to show all objects first.",
    )(made)
    made.help = help
    return made


watch_agents = _watch("agents", "AdminService", "Show agents and their changes, without their states.", "agent")
watch_clusters = _watch("clusters", "AdminService", "Show clusters and their changes.", "cluster")
watch_users = _watch("users", "AdminService", "Show users and their changes.", "user")
watch_all = _watch("all", "AdminService", "Show objects of all kinds and their changes.")
watch_allocations = _watch(
    "allocations", "TenantService", "Show the allocations that you may use, and their changes.", "allocation"
)
watch_partitions = _watch("partitions", "TenantService", "Show partitions and their changes.", "partition")
