# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for IPUs in quarantine."""

from __future__ import annotations

from typing import Any

import click

from openipu.vipu.cli import output
from openipu.vipu.cli.grammar import Id, command
from openipu.vipu.cli.session import Session


@command("list", "quarantine")
def list_quarantine(session: Session) -> None:
    """Show the IPUs in quarantine.

    The records do not explain the partitions that hold them, so nothing else is placed there. A partition that waits
    for release may have running jobs: check that before you release it.
    """
    from openipu.shared.vipu.contract import admin

    reply = session.call("admin", "ListQuarantine", admin.ListQuarantineRequest())
    found = [_share(each) for each in reply.shares]
    rows = [
        (
            item["agent"],
            ", ".join(map(str, item["ipus"])),
            item["partition"],
            item["deployment"],
            "releasing" if item["releasing"] else "waits for release",
        )
        for item in found
    ]
    session.show(found, output.table(("Agent", "IPUs", "Partition", "Deployment", "State"), rows))


@command("release", "quarantine")
@click.argument("id", metavar="AGENT", type=Id("agent"))
@click.option(
    "--partition",
    type=Id("partition", existing=False),
    help="Only this partition. Omit to release all shares of the agent.",
)
def release_quarantine(session: Session, id: str, partition: str | None) -> None:
    """Release the IPUs in quarantine of an agent.

    Jobs that still use the IPUs lose them. The command returns when the agent has released them.
    """
    from openipu.shared.vipu.contract import admin

    request = admin.ReleaseQuarantineRequest(agent_id=id, partition_id=partition or "")
    reply = session.call("admin", "ReleaseQuarantine", request)
    session.succeed(released=[_share(each) for each in reply.shares])


def _share(message: Any) -> dict[str, Any]:
    return {
        "agent": message.agent_id,
        "ipus": list(message.ipus),
        "partition": message.partition_id,
        "deployment": message.deployment,
        "epoch": message.epoch,
        "releasing": message.releasing,
    }
