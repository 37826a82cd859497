# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line ``vipu-admin``: all commands for administrators and users of a POD."""

from __future__ import annotations

from openipu.vipu.cli import user
from openipu.vipu.cli.agent_service import drain_agent, update_agent
from openipu.vipu.cli.agents import (
    create_agent,
    discover_agents,
    get_agent,
    list_agents,
    remove_agent,
    take_over_agent,
)
from openipu.vipu.cli.allocations import create_allocation, remove_allocation
from openipu.vipu.cli.certificates import create_certificate, list_certificates, remove_certificate
from openipu.vipu.cli.cluster_tests import test_cluster
from openipu.vipu.cli.clusters import create_cluster, get_cluster, list_clusters, remove_cluster
from openipu.vipu.cli.grammar import program
from openipu.vipu.cli.quarantine import list_quarantine, release_quarantine
from openipu.vipu.cli.users import create_user, list_users, remove_user
from openipu.vipu.cli.watch import watch_agents, watch_all, watch_clusters, watch_users

LEAVES = (
    create_agent,
    update_agent,
    drain_agent,
    take_over_agent,
    discover_agents,
    get_agent,
    list_agents,
    remove_agent,
    list_quarantine,
    release_quarantine,
    create_cluster,
    get_cluster,
    list_clusters,
    remove_cluster,
    test_cluster,
    create_allocation,
    remove_allocation,
    create_user,
    list_users,
    remove_user,
    create_certificate,
    list_certificates,
    remove_certificate,
    watch_agents,
    watch_clusters,
    watch_users,
    watch_all,
)
vipu_admin = program(
    "vipu-admin", "Manage agents, clusters, allocations, users and partitions of an IPU-POD.", (*LEAVES, *user.LEAVES)
)


def main() -> None:
    """Run ``vipu-admin``."""
    vipu_admin(prog_name="vipu-admin")


if __name__ == "__main__":
    main()
