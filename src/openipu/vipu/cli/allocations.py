# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for allocations."""

from __future__ import annotations

from typing import Any

import click

from openipu.vipu.cli import listing, output
from openipu.vipu.cli.grammar import Count, Id, Ids, command
from openipu.vipu.cli.removal import removal
from openipu.vipu.cli.session import Session


@command("create", "allocation")
@click.argument("id", type=Id("allocation", existing=False))
@click.option("--cluster", type=Id("cluster"), required=True, help="Cluster of the IPU-Machines.")
@click.option("--size", type=Count(), help="Number of IPU-Machines; the controller chooses consecutive ones.")
@click.option("--agents", type=Ids("agent"), help="Agents of the IPU-Machines, in the order of the cluster.")
def create_allocation(
    session: Session, id: str, cluster: str, size: int | None, agents: tuple[str, ...] | None
) -> None:
    """Create an allocation of IPU-Machines for a tenant."""
    from openipu.shared.vipu.contract import admin

    if (size is None) == (agents is None):
        raise click.UsageError("Give --size or --agents, but not both.")
    spec = admin.AllocationSpec(id=id, cluster_id=cluster, size=size or 0, agent_ids=agents or ())
    reply = session.call("admin", "CreateAllocation", admin.CreateAllocationRequest(spec=spec))
    session.succeed(agents=list(reply.allocation.spec.agent_ids))


@command("list", "allocations")
def list_allocations(session: Session) -> None:
    """Show all allocations that you may use."""
    found = listing.read(session, "allocation")
    rows = [(item["id"], output.words(item["agents"])) for item in found]
    session.show(found, output.table(("Allocation ID", "Agents"), rows))


@command("get", "allocation")
@click.argument("id", type=Id("allocation"))
def get_allocation(session: Session, id: str) -> None:
    """Show an allocation and its free IPUs."""
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.contract import admin

    reply = session.call("tenant", "GetAllocation", admin.GetAllocationRequest(id=id))
    item = objects.allocation(reply.allocation)
    session.show(item, full(item))


def full(item: dict[str, Any]) -> str:
    """Return an allocation in text form."""
    return output.block(
        (
            ("Allocation ID", item["id"]),
            ("Cluster", item["cluster"]),
            ("Size", item["size"]),
            ("Agents", output.words(item["agents"])),
            ("Partitions", output.words(item["partitions"])),
            ("Free IPUs", item["free_ipus"]),
            ("Free Runs of Machines", output.words(map(str, item["free_machines"]))),
        )
    )


remove_allocation = removal(
    "allocation",
    "Remove an allocation and free its IPU-Machines.",
    "Also remove its partitions, even when an IPU-Machine does not respond.",
)
