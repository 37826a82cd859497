# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for agents and IPU attributes."""

from __future__ import annotations

from typing import Any

import click

from openipu.shared.vipu.ports import AGENT_PORT
from openipu.vipu.cli import listing, output
from openipu.vipu.cli.grammar import Id, Ids, command
from openipu.vipu.cli.removal import removal
from openipu.vipu.cli.session import Session


@command("create", "agent")
@click.argument("id", type=Id("agent", existing=False))
@click.option("--host", required=True, help="Address or name of the IPU-Machine's gateway.")
@click.option("--port", type=click.IntRange(1, 65535), default=AGENT_PORT, show_default=True, help="Port of the agent.")
@click.option("--take-over", is_flag=True, help="Take the agent over when it belongs to another deployment.")
def create_agent(session: Session, id: str, host: str, port: int, take_over: bool) -> None:
    """Register an agent."""
    from openipu.shared.vipu.contract import admin

    spec = admin.AgentSpec(id=id, host=host, port=port, take_over=take_over)
    session.call("admin", "CreateAgent", admin.CreateAgentRequest(spec=spec))
    session.succeed()


@command("take-over", "agent")
@click.argument("id", type=Id("agent"))
@click.option(
    "--other-agent",
    is_flag=True,
    help="Even when the machine is registered as another agent of this deployment. Its partitions are released, and "
    "their jobs stop.",
)
def take_over_agent(session: Session, id: str, other_agent: bool) -> None:
    """Take over an agent that belongs to another deployment, or to a later controller.

    The other controller can no longer change the agent. The partitions that it has on the agent stay until they are
    released.
    """
    from openipu.shared.vipu.contract import admin

    session.call("admin", "TakeOverAgent", admin.TakeOverAgentRequest(id=id, other_agent=other_agent))
    session.succeed()


@command("list", "agents")
def list_agents(session: Session) -> None:
    """Show all agents."""
    found = listing.read(session, "agent")
    rows = [
        (
            item["id"],
            item["host"],
            item["port"],
            item["state"],
            item["cluster"] or "",
            item["allocation"] or "",
            service(item),
        )
        for item in found
    ]
    session.show(found, output.table(("Agent ID", "Host", "Port", "Status", "Cluster", "Allocation", "Service"), rows))


@command("get", "agent")
@click.argument("id", type=Id("agent"))
def get_agent(session: Session, id: str) -> None:
    """Show an agent, its IPU-Machine and its IPUs."""
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.contract import admin

    agent = session.call("admin", "GetAgent", admin.GetAgentRequest(id=id)).agent
    item = objects.agent(agent)
    item["facts"] = {fact.name: fact.value for fact in agent.facts}
    item["ipus"] = [{"IPU": ipu.ipu, **{fact.name: fact.value for fact in ipu.facts}} for ipu in agent.ipus]
    session.show(item, full(item))


@command("discover", "agent")
@click.option("--auto-add", is_flag=True, help="Register the allowed agents that are not registered.")
@click.option(
    "--allow",
    metavar="ID|NETWORK,…",
    default="",
    help="Automatic IDs, and IPv4 networks such as 10.2.0.0/16, of the agents to register. --auto-add requires it.",
)
def discover_agents(session: Session, auto_add: bool, allow: str) -> None:
    """Show the agents that announce themselves."""
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.contract import admin

    if auto_add:
        allowed = [item.strip() for item in allow.split(",") if item.strip()]
        reply = session.call("admin", "AddDiscoveredAgents", admin.AddDiscoveredAgentsRequest(allowed=allowed))
        added, rejected = list(reply.agent_ids), [objects.discovered(item) for item in reply.rejected]
        lines = [f"Added agent {output.printable(id)}" for id in added]
        lines += [f"Rejected agent {item['auto_add_id']}: {output.printable(item['conflict'])}" for item in rejected]
        session.show({"added": added, "rejected": rejected}, "\n".join(lines) or "There is no agent to add.")
        return
    reply = session.call("admin", "ListDiscoveredAgents", admin.ListDiscoveredAgentsRequest())
    found = [objects.discovered(item) for item in reply.agents]
    session.show(found, discovered(found))


@command("list", "ipu-attrs")
@click.option("--agents", type=Ids("agent"), help="Only the IPUs of these agents. Omit for all agents.")
def list_ipu_attrs(session: Session, agents: tuple[str, ...] | None) -> None:
    """Show the attributes of all IPUs that you may use."""
    from openipu.shared.vipu.contract import virmgrpc

    request = virmgrpc.ListIPUAttributesRequest(agents=agents or ())
    reply = session.call("user", "ListIPUAttributes", request)
    found = [
        {"agent": entry.agent, "ipu": ipu, "attributes": dict(sorted(attributes.attributes.items()))}
        for entry in reply.entries
        for ipu, attributes in sorted(entry.ipu_attributes.items())
    ]
    header = ("Agent", "IPU", "Attribute", "Value")
    session.show(found, output.table(header, attribute_rows(found), ruled=False))


def discovered(found: list[dict[str, Any]]) -> str:
    """Return discovered agents as a table, with a column for conflicts if there are any."""
    header: tuple[str, ...] = ("Host", "Port", "Network Interface", "Time Since Last Seen", "Agent Auto-Add ID")
    rows: list[tuple[Any, ...]] = [
        (each["host"], each["port"], each["interface"], f"{each['age']:.9f}s", each["auto_add_id"]) for each in found
    ]
    if any(each["conflict"] for each in found):
        header = (*header, "Conflict")
        rows = [(*row, each["conflict"] or "") for row, each in zip(rows, found, strict=True)]
    return output.table(header, rows, ruled=False, closed=False)


def full(item: dict[str, Any]) -> str:
    """Return an agent in text form: a block and a table of its IPUs."""
    pairs = [("Agent ID", item["id"]), ("Host", item["host"]), ("Port", item["port"]), ("Status", item["state"])]
    if item["reason"]:
        pairs.append(("Reason", item["reason"]))
    if not item["in_service"]:
        pairs += [("Service", service(item)), ("Service Reason", item["service_reason"] or "")]
    parts = [output.block([*pairs, *item["facts"].items()])]
    if item["ipus"]:
        header = list(dict.fromkeys(name for ipu in item["ipus"] for name in ipu))
        parts.append(output.table(header, [[ipu.get(name, "") for name in header] for ipu in item["ipus"]]))
    return "\n".join(parts)


def service(item: dict[str, Any]) -> str:
    """Return the state of service of an agent in text form."""
    return "In service" if item["in_service"] else "Out of service"


def attribute_rows(found: list[dict[str, Any]]) -> list[tuple[output.Cell, ...]]:
    """Return the rows of ``list ipu-attrs``. Agent and IPU are in the first of their rows only."""
    rows: list[tuple[output.Cell, ...]] = []
    agent = None
    for item in found:
        names = list(item["attributes"])
        values = [value.replace("\n", " ") for value in item["attributes"].values()]
        rows.append(("" if item["agent"] == agent else item["agent"], item["ipu"], names, values))
        agent = item["agent"]
    return rows


remove_agent = removal(
    "agent",
    "Remove an agent.",
    "Also remove its cluster, allocations and partitions, even when an IPU-Machine does not respond.",
)
