# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that take IPU-Machines out of service."""

from __future__ import annotations

import click

from openipu.vipu.cli import output
from openipu.vipu.cli.grammar import Id, command
from openipu.vipu.cli.session import Session, VipuCommandError, with_options


@command("update", "agent")
@click.argument("id", type=Id("agent"))
@click.option(
    "--out-of-service/--in-service",
    default=None,
    help="With --out-of-service, nothing new is placed on the machine. Its partitions stay.",
)
@click.option("--reason", default="", help="Why the agent is out of service. Omit to leave it unchanged.")
def update_agent(session: Session, id: str, out_of_service: bool | None, reason: str) -> None:
    """Take an agent out of service, or put it into service."""
    from openipu.shared.vipu.contract import admin

    if out_of_service is None:
        raise click.UsageError("Missing option '--out-of-service' or '--in-service'. Set one of them.")
    service = admin.SERVICE_STATE_OUT_OF_SERVICE if out_of_service else admin.SERVICE_STATE_IN_SERVICE
    request = admin.SetAgentServiceRequest(id=id, service=service, service_reason=reason)
    reply = session.call("admin", "SetAgentService", request)
    session.succeed(changed=reply.changed)


@command("drain", "agent")
@click.argument("id", type=Id("agent"))
@click.option("--reason", default="", help="Why the agent is out of service. Omit to leave it unchanged.")
@click.option("--force", is_flag=True, help="Also move partitions that may have a job. The job ends.")
@click.option("--dry-run", is_flag=True, help="Show the partitions, and change nothing.")
def drain_agent(session: Session, id: str, reason: str, force: bool, dry_run: bool) -> None:
    """Take an agent out of service and move its partitions to other machines.

    Relocatable partitions that have failed move. With --force, the other relocatable ones move too. The command shows
    all partitions of the machine, and the users of those that stay. The exit status is 1 when partitions stay.
    """
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.contract import admin

    request = admin.DrainAgentRequest(id=id, service_reason=reason, force=force, validate_only=dry_run)
    reply = session.call("admin", "DrainAgent", request)
    found = [objects.drained(item) for item in reply.partitions]
    for item in found:
        item["reason"] = item["reason"] and with_options(item["reason"])
    rows = [
        (
            item["id"],
            item["allocation"],
            ", ".join(item["users"]),
            f"moves to {', '.join(item['agents'])}" if item["moves"] else f"stays: {item['reason']}",
        )
        for item in found
    ]
    if found and not session.json:
        click.echo(output.table(("Partition", "Allocation", "Users", "Result"), rows))
    staying = [item["id"] for item in found if not item["moves"]]
    if dry_run:
        counts = f"{len(found) - len(staying)} of {len(found)} partitions would move"
        session.succeed(addition=f"Dry run, nothing was changed: {counts}.", changed=reply.changed, partitions=found)
    elif staying:
        session.fail(
            f"the agent is out of service, but {len(staying)} of {len(found)} partitions stay on it: "
            f"{', '.join(staying)}. Remove them before you switch it off.",
            VipuCommandError.error_code,
            changed=reply.changed,
            partitions=found,
        )
        raise click.exceptions.Exit(1)
    else:
        session.succeed(changed=reply.changed, partitions=found)
