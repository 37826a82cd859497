# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for agents, and for what they tell of their IPUs."""

from __future__ import annotations

from typing import Any

import click

from openipu.vipu.cli import listing, output
from openipu.vipu.cli.grammar import Id, Ids, command
from openipu.vipu.cli.removal import removal
from openipu.vipu.cli.session import Session


@command("create", "agent")
@click.argument("id", type=Id("agent", existing=False))
@click.option("--host", required=True, help="Address or name of the IPU-Machine's gateway.")
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True, help="Its port.")
def create_agent(session: Session, id: str, host: str, port: int) -> None:
    """Make an agent known to the controller."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

    spec = admin.AgentSpec(id=id, host=host, port=port)
    session.call("admin", "CreateAgent", admin.CreateAgentRequest(spec=spec))
    session.succeed()


@command("list", "agents")
def list_agents(session: Session) -> None:
    """Show all agents."""
    found = listing.read(session, "agent")
    rows = [
        (item["id"], item["host"], item["port"], item["state"], item["cluster"] or "", item["allocation"] or "")
        for item in found
    ]
    session.show(found, output.table(("Agent ID", "Host", "Port", "Status", "Cluster", "Allocation"), rows))


@command("get", "agent")
@click.argument("id", type=Id("agent"))
def get_agent(session: Session, id: str) -> None:
    """Show an agent, its IPU-Machine and its IPUs."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

    agent = session.call("admin", "GetAgent", admin.GetAgentRequest(id=id)).agent
    item = objects.agent(agent)
    item["facts"] = {fact.name: fact.value for fact in agent.facts}
    item["ipus"] = [{"IPU": ipu.ipu, **{fact.name: fact.value for fact in ipu.facts}} for ipu in agent.ipus]
    session.show(item, full(item))


@command("discover", "agent")
@click.option("--auto-add", is_flag=True, help="Make those known to the controller that are not yet.")
def discover_agents(session: Session, auto_add: bool) -> None:
    """Show the agents that tell of themselves on the network."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

    if auto_add:
        added = list(session.call("admin", "AddDiscoveredAgents", admin.AddDiscoveredAgentsRequest()).agent_ids)
        lines = [f"Added agent {output.printable(id)}" for id in added]
        session.show({"added": added}, "\n".join(lines) or "There is no agent to add.")
        return
    reply = session.call("admin", "ListDiscoveredAgents", admin.ListDiscoveredAgentsRequest())
    found = [objects.discovered(item) for item in reply.agents]
    header = ("Host", "Port", "Network Interface", "Time Since Last Seen", "Agent Auto-Add ID")
    rows = [
        (each["host"], each["port"], each["interface"], f"{each['age']:.9f}s", each["auto_add_id"]) for each in found
    ]
    session.show(found, output.table(header, rows, ruled=False))


@command("list", "ipu-attrs")
@click.option("--agents", type=Ids("agent"), help="Those of these agents only.")
def list_ipu_attrs(session: Session, agents: tuple[str, ...] | None) -> None:
    """Show the attributes of all IPUs that are yours to use."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc

    request = virmgrpc.ListIPUAttributesRequest(agents=agents or ())
    reply = session.call("user", "ListIPUAttributes", request)
    found = [
        {"agent": entry.agent, "ipu": ipu, "attributes": dict(sorted(attributes.attributes.items()))}
        for entry in reply.entries
        for ipu, attributes in sorted(entry.ipu_attributes.items())
    ]
    header = ("Agent", "IPU", "Attribute", "Value")
    session.show(found, output.table(header, attribute_rows(found), ruled=False))


def full(item: dict[str, Any]) -> str:
    """An agent as the block and the table that people read."""
    pairs = [("Agent ID", item["id"]), ("Host", item["host"]), ("Port", item["port"]), ("Status", item["state"])]
    if item["reason"]:
        pairs.append(("Reason", item["reason"]))
    parts = [output.block([*pairs, *item["facts"].items()])]
    if item["ipus"]:
        header = list(dict.fromkeys(name for ipu in item["ipus"] for name in ipu))
        parts.append(output.table(header, [[ipu.get(name, "") for name in header] for ipu in item["ipus"]]))
    return "\n".join(parts)


def attribute_rows(found: list[dict[str, Any]]) -> list[tuple[output.Cell, ...]]:
    """The rows of list ipu-attrs: an agent stands in its first row only, and so does an IPU."""
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
    "Forget an agent.",
    "Remove its cluster first, with allocations and partitions, even when an IPU-Machine cannot be told.",
)
