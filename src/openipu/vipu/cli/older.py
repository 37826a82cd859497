# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line ``vipu-cli``: the older name of ``vipu`` and ``vipu-admin``, as PopTorch and PopART call it.

It differs in three ways: ``-a`` selects the commands of administrators, ``delete`` is ``remove``, and ``--showjson``
prints lists in the form that PopTorch reads.
"""

from __future__ import annotations

from typing import Any

import click

from openipu.vipu.cli import listing, output
from openipu.vipu.cli.admin import vipu_admin
from openipu.vipu.cli.grammar import CONTEXT, Group, Leaf, Verb, command, program_group
from openipu.vipu.cli.session import Session
from openipu.vipu.cli.user import vipu
from openipu.vipu.domain.model import IPUS_PER_MACHINE


@command("list", "partitions")
def list_partitions(session: Session) -> None:
    """Print all partitions with the fields of the API."""
    click.echo(output.as_json([partition(item) for item in listing.read(session, "partition")]))


@command("list", "clusters")
def list_clusters(session: Session) -> None:
    """Print all clusters with the IPUs of each IPU-Link domain."""
    click.echo(output.as_json([cluster(item) for item in listing.read(session, "cluster")]))


def partition(item: dict[str, Any]) -> dict[str, Any]:
    """Return a partition in the form of ``--showjson``, with the names and numbers of the API."""
    from openipu.shared.vipu.names import READY
    from openipu.shared.vipu.partition_fields import PARTITION_FIELDS

    spec = {field.message: field.encode(item[field.name]) for field in PARTITION_FIELDS if field.message}
    del spec["size"]  # a field of requests only
    return {"partition": {"id": item["id"], "spec": spec, "ready_state": READY.number(item["state"])}}


def cluster(item: dict[str, Any]) -> dict[str, Any]:
    """Return a cluster in the form of ``--showjson``."""
    size = len(item["agents"]) // item["num_ilds"]
    domains = [item["agents"][first : first + size] for first in range(0, len(item["agents"]), size)]
    spec = {
        "agent_ids": item["agents"],
        "ipu_link_domains": [
            {"ipus": [{"agent_id": agent, "ipu_id": ipu} for agent in agents for ipu in range(IPUS_PER_MACHINE)]}
            for agents in domains
        ],
    }
    return {"id": item["id"], "spec": spec}


_FLAGS = (
    click.Option(["-a", "--admin"], is_flag=True, help="Use the commands of vipu-admin."),
    click.Option(["--showjson"], is_flag=True, help="Print JSON, lists in the older form."),
)
_SHOWJSON: dict[str, Leaf] = {"partition": list_partitions, "cluster": list_clusters}


class _OlderVerb(Verb):
    """Nouns of a verb, with the older form of lists."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a noun."""
        found = super().get_command(ctx, cmd_name)
        root = ctx.find_root().params
        if found is not None and self.name == "list" and root.get("showjson"):
            return _SHOWJSON.get(cmd_name.removesuffix("s"), found)
        return found


class _OlderProgram(Group):
    """Verbs of ``vipu``, or with ``-a`` those of ``vipu-admin``. Its flags may also follow the verb or the noun."""

    elsewhere = ("vipu-cli -a", vipu.elsewhere[1])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the flags of the program, wherever they are."""
        own = {name for param in _FLAGS for name in param.opts}
        end = args.index("--") if "--" in args else len(args)
        first = [arg for arg in args[:end] if arg in own]
        return super().parse_args(ctx, [*first, *(arg for arg in args[:end] if arg not in own), *args[end:]])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. ``--showjson`` implies JSON output."""
        if ctx.params["showjson"]:
            ctx.params["output"] = "json"
        return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs."""
        return [*_program(ctx).list_commands(ctx), "delete"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the commands of a verb."""
        found = _program(ctx).get_command(ctx, "remove" if cmd_name == "delete" else cmd_name)
        if not isinstance(found, Verb):
            return found
        verb = _OlderVerb(found.name, help=found.help, context_settings=CONTEXT, commands=found.commands)
        verb.elsewhere = found.elsewhere if ctx.params.get("admin") else self.elsewhere
        return verb


def _program(ctx: click.Context) -> click.Group:
    return vipu_admin if ctx.find_root().params.get("admin") else vipu


vipu_cli = program_group(
    _OlderProgram,
    "vipu-cli",
    "Older name of vipu, and with -a of vipu-admin.",
    _FLAGS,
)


def main() -> None:
    """Run ``vipu-cli``."""
    vipu_cli(prog_name="vipu-cli")


if __name__ == "__main__":
    main()
