# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for clusters."""

from __future__ import annotations

import click

from openipu.shared.vipu.names import CLUSTER_TOPOLOGY, TOPOLOGY
from openipu.vipu.cli import listing, output
from openipu.vipu.cli.grammar import EnumName, Id, Ids, command
from openipu.vipu.cli.removal import removal
from openipu.vipu.cli.session import Session


@command("create", "cluster")
@click.argument("id", type=Id("cluster", existing=False))
@click.option("--agents", type=Ids("agent"), required=True, help="Agents of the cluster, the lowest in the rack first.")
@click.option("--num-ipulinkdomains", type=click.IntRange(min=1), help="Number of IPU-Link domains.  [default: 1]")
@click.option("--topology", type=EnumName(TOPOLOGY), help="IPU-Link topology of each domain.  [default: mesh]")
@click.option(
    "--cluster-topology",
    type=EnumName(CLUSTER_TOPOLOGY),
    help="GW-Link topology between the domains.  [default: looped]",
)
def create_cluster(
    session: Session,
    id: str,
    agents: tuple[str, ...],
    num_ipulinkdomains: int | None,
    topology: str | None,
    cluster_topology: str | None,
) -> None:
    """Create a cluster of agents whose IPU-Machines are cabled together."""
    from openipu.shared.vipu.contract import admin

    spec = admin.ClusterSpec(
        id=id,
        agent_ids=agents,
        num_ilds=num_ipulinkdomains or 0,
        ipu_link_topology=TOPOLOGY.number(topology),
        gw_link_topology=CLUSTER_TOPOLOGY.number(cluster_topology),
    )
    session.call("admin", "CreateCluster", admin.CreateClusterRequest(spec=spec))
    session.succeed()


@command("list", "clusters")
def list_clusters(session: Session) -> None:
    """Show all clusters."""
    found = listing.read(session, "cluster")
    rows = [
        (
            item["id"],
            item["num_ilds"],
            item["topology"],
            item["cluster_topology"],
            output.words(item["agents"]),
            output.words(item["allocations"]),
        )
        for item in found
    ]
    header = ("Cluster", "ILDs", "Topology", "Cluster Topology", "Agents", "Allocations")
    session.show(found, output.table(header, rows))


@command("get", "cluster")
@click.argument("id", type=Id("cluster"))
def get_cluster(session: Session, id: str) -> None:
    """Show a cluster."""
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.contract import admin

    reply = session.call("admin", "GetCluster", admin.GetClusterRequest(id=id))
    item = objects.cluster(reply.cluster)
    text = output.block(
        (
            ("Cluster", item["id"]),
            ("ILDs", item["num_ilds"]),
            ("Topology", item["topology"]),
            ("Cluster Topology", item["cluster_topology"]),
            ("Agents", output.words(item["agents"])),
            ("Allocations", output.words(item["allocations"])),
        )
    )
    session.show(item, text)


remove_cluster = removal(
    "cluster",
    "Remove a cluster and keep its agents.",
    "Also remove its allocations and partitions, even when an IPU-Machine does not respond.",
)
