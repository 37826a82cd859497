# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from ansible_collections.openipu.pod.plugins.module_utils.vipu.names import GW_ROUTING, ROUTING, SYNC_TYPE

from openipu.vipu.cli import conffiles, listing, output
from openipu.vipu.cli.grammar import Count, Id, Named, command
from openipu.vipu.cli.session import Failed, Session

_F = TypeVar("_F", bound=Callable[..., Any])
_COUNT = Count()
PARTITION = Id("partition")
LIST_HEADER = (
    "Allocation",
    "Cluster",
    "Partition",
    "ILDs",
    "GW Routing",
    "ILD Routing",
    "Size",
    "GCDs",
    "State",
)


def _waiting(function: _F) -> _F:
    """The flags of commands that wait."""
    function = click.option("--no-wait", is_flag=True, help="Do not wait until it is ACTIVE, and write no files.")(
        function
    )
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0),
        default=120.0,
        show_default=True,
        help="Seconds to wait until it is ACTIVE.",
    )(function)


@command("create", "partition")
@click.argument("id", type=Id("partition", existing=False))
@click.option("--size", type=_COUNT, required=True, help="IPUs, a power of two.")
@click.option("--allocation", type=Id("allocation"), help="Where to take them from.")
@click.option("--cluster", type=Id("cluster"), help="Where to take them from; deprecated, give --allocation.")
@click.option("--num-gcds", "--gcds", type=_COUNT, help="Graph compilation domains; the IPUs are split evenly.")
@click.option("--gcd-sync-replicas", type=_COUNT, help="Replicas that synchronise.  [default: one for each GCD]")
@click.option("--routing", type=Named(ROUTING), help="IPU-Link routing.  [default: by size and topology]")
@click.option("--gw-routing", type=Named(GW_ROUTING), help="GW-Link routing between IPU-Link domains.")
@click.option("--num-ipulink-segments", type=_COUNT, help="IPU-Link domains to spread over.")
@click.option("--sync-type", type=Named(SYNC_TYPE), help="Synchronisation; --reconfigurable needs c2-compatible.")
@click.option("--reconfigurable", is_flag=True, help="Let programs choose how many of its IPUs form a device.")
@click.option("--disable-auto-reset", is_flag=True, help="Do not reset it by itself after a fault.")
@click.option("--relocatable", is_flag=True, help="Move it to free IPUs when an IPU-Machine of it fails.")
@click.option("--index", hidden=True, help="Graphcore's; refused, for its meaning is not public.")
@_waiting
def create_partition(
    session: Session,
    id: str,
    size: int,
    allocation: str | None,
    cluster: str | None,
    num_gcds: int | None,
    gcd_sync_replicas: int | None,
    routing: str | None,
    gw_routing: str | None,
    num_ipulink_segments: int | None,
    sync_type: str | None,
    reconfigurable: bool,
    disable_auto_reset: bool,
    relocatable: bool,
    index: str | None,
    no_wait: bool,
    timeout: float,
) -> None:
    """Make a partition, wait until it is ACTIVE, and write its IPUoF configuration to ~/.ipuof.conf.d."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc

    if index is not None:
        # Graphcore's guides mention the flag; what it counts is not public.
        raise Failed(
            "this controller has no choice of places by --index: leave it out, or name the IPUs with ipus "
            "of the module openipu.pod.vipu_partition or with a PartitionSpec of the API."
        )
    if bool(allocation) == bool(cluster):
        raise click.UsageError("Say where to take the IPUs from: --allocation, or the deprecated --cluster, not both.")
    wanted = {
        "id": id,
        "size": size,
        "allocation": allocation,
        "cluster": cluster,
        "num_gcds": num_gcds,
        "num_replicas": gcd_sync_replicas,
        "routing": routing,
        "gw_routing": gw_routing,
        "num_segments": num_ipulink_segments,
        "sync_type": sync_type,
        "reconfigurable": reconfigurable,
    }
    request = virmgrpc.CreatePartitionRequest(
        requirements=objects.requirements(wanted),
        disable_auto_reset=disable_auto_reset,
        relocatable=relocatable,
    )
    session.call("user", "CreatePartition", request)
    files = []
    if not no_wait:
        _wait_active(session, id, timeout)
        files = conffiles.write(id, _ipuof_config(session, id))
    session.succeed(files=[str(path) for path in files])


@command("reset", "partition")
@click.argument("id", type=PARTITION)
@click.option("--relocatable", is_flag=True, help="Let it move to other free IPUs this time.")
@_waiting
def reset_partition(session: Session, id: str, relocatable: bool, no_wait: bool, timeout: float) -> None:
    """Configure a partition anew, and wait until it is ACTIVE."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc

    session.call("user", "ResetPartition", virmgrpc.ResetPartitionRequest(partition_id=id, relocatable=relocatable))
    files = []
    if not no_wait:
        _wait_active(session, id, timeout)
        if conffiles.present(id):  # it may have moved
            files = conffiles.write(id, _ipuof_config(session, id))
    session.succeed(files=[str(path) for path in files])


@command("remove", "partition")
@click.argument("id", type=PARTITION)
@click.option("--force", is_flag=True, help="Go on when an IPU-Machine cannot be told.")
def remove_partition(session: Session, id: str, force: bool) -> None:
    """Remove a partition, and its files in ~/.ipuof.conf.d."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import REMOVAL_SECONDS
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc

    # Which files are its own depends on its number of GCDs, which nobody knows afterwards.
    num_gcds = 0
    if conffiles.present(id):
        num_gcds = next((item["num_gcds"] for item in listing.read(session, "partition") if item["id"] == id), 0)
    request = virmgrpc.RemovePartitionRequest(partition_id=id, force=force)
    session.call("user", "RemovePartition", request, REMOVAL_SECONDS)
    conffiles.remove(id, num_gcds)
    session.succeed()


@command("list", "partitions")
@click.option("--allocation", type=Id("allocation"), help="Those of this allocation only.")
def list_partitions(session: Session, allocation: str | None) -> None:
    """Show all partitions."""
    found = listing.read(session, "partition", allocation_id=allocation or "")
    if allocation and not found:
        _check_there(session, allocation)
    session.show(found, output.table(LIST_HEADER, map(list_row, found), ruled=False))


def _check_there(session: Session, allocation: str) -> None:
    """Raise Failed when there is no such allocation, which the public API lists as if it were an empty one."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import VipuError

    try:
        known = listing.ids(session, "allocation")
    except VipuError as error:
        if error.code != "UNIMPLEMENTED":
            raise
        return
    if allocation not in known:
        among = f"choose from {', '.join(known)}" if known else "there is none that you may use"
        raise Failed(f"there is no allocation {allocation!r}: {among}.")


@command("get", "partition")
@click.argument("id", type=PARTITION)
@click.option("--gcd", type=click.IntRange(min=0), help="The IPUoF configuration of this GCD only.")
@click.option("--ipuof-configs", is_flag=True, help="Its IPUoF configuration as JSON, after one line of text.")
def get_partition(session: Session, id: str, gcd: int | None, ipuof_configs: bool) -> None:
    """Show a partition: what it is, its state, its IPUs; or its IPUoF configuration.

    With --gcd the configuration comes without the line before it, as the file of that GCD has it.
    Without it, a partition of several GCDs gives a list of them.
    """
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import ipuof, objects
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc

    if ipuof_configs or gcd is not None:
        configs = [ipuof.gcd_config(each) for each in _ipuof_config(session, id, gcd).gcd_configs]
        if gcd is None and not session.json:
            click.echo(f"IPUoF configuration of partition {id}, number of GCDs {len(configs)}:")
        click.echo(ipuof.text(configs[0] if len(configs) == 1 else configs), nl=False)
        return
    request = virmgrpc.GetPartitionStatusRequest(partition_id=id)
    status = objects.status(session.call("user", "GetPartitionStatus", request).status)
    found = next((item for item in listing.read(session, "partition") if item["id"] == id), None)
    if found is None:
        raise Failed(f"Partition {id!r} was removed by somebody else meanwhile.")
    found.update(_options(session, id))
    session.show({**found, **status}, full(found, status))


def _options(session: Session, id: str) -> dict[str, bool]:
    """What the public API does not tell of a partition; nothing when the controller offers no other."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import VipuError
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

    try:
        reply = session.call("tenant", "ListPartitionOptions", admin.ListPartitionOptionsRequest(partition_ids=[id]))
    except VipuError as error:
        if error.code != "UNIMPLEMENTED":
            raise
        return {}
    return next((objects.partition_options(item) for item in reply.partitions), {})


_OPTIONS = {"disable_auto_reset": "Auto Reset Disabled", "relocatable": "Relocatable"}


def list_row(item: dict[str, Any]) -> tuple[output.Cell, ...]:
    """A partition in the list. Every first cell says something: a blank one would go on with the row before."""
    return (
        item["allocation"] or "-",
        item["cluster"],
        item["id"],
        _num_ilds(item),
        (item["gw_routing"] or "undefined").upper(),
        item["routing"].upper(),
        item["size"],
        item["num_gcds"],
        item["state"],
    )


def full(item: dict[str, Any], status: dict[str, Any]) -> str:
    """A partition and its PartitionStatus as the block and the table that people read."""
    return "\n".join(
        (
            output.block(
                (
                    ("Partition", item["id"]),
                    ("Allocation", item["allocation"]),
                    ("Cluster", item["cluster"]),
                    ("State", status["state"]),
                    ("Operation", status["operation"]),
                    ("Errors", status["errors"]),
                    ("Auto Resets", f"{status['retries']} of {status['max_retries']}"),
                    ("Last Auto Reset", status["last_auto_reset"] or "never"),
                    ("Size", item["size"]),
                    ("GCDs", item["num_gcds"]),
                    ("Replicas", item["num_replicas"]),
                    ("ILDs", _num_ilds(item)),
                    ("IPU-Link Segments", item["num_segments"]),
                    ("ILD Routing", item["routing"].upper()),
                    ("GW Routing", (item["gw_routing"] or "undefined").upper()),
                    ("Sync Type", item["sync_type"]),
                    ("Reconfigurable", output.yes_no(item["reconfigurable"])),
                    *((title, output.yes_no(item[name])) for name, title in _OPTIONS.items() if name in item),
                )
            ),
            output.table(
                ("Segment", "Id", "ILD", "Topology Id"),
                [(ipu["ild_routing_id"], ipu["routing_id"], ipu["ild"], ipu["topology_id"]) for ipu in item["ipus"]],
            ),
        )
    )


def _num_ilds(item: dict[str, Any]) -> int:
    return len({ipu["ild"] for ipu in item["ipus"]})


def _ipuof_config(session: Session, id: str, gcd: int | None = None) -> Any:
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc

    which = None if gcd is None else virmgrpc.GcdID(id=gcd)
    request = virmgrpc.GetPartitionIpuofConfigRequest(partition_id=id, gcd_id=which)
    return session.call("user", "GetPartitionIpuofConfig", request).ipuof_config


def _wait_active(session: Session, id: str, timeout: float) -> None:
    """Wait until a partition is ACTIVE; raises Failed when it does not become so in ``timeout`` seconds."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects
    from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import wait_partition

    done, message = wait_partition(session.client, id, timeout)
    status = objects.status(message)
    if not done:
        raise Failed(
            f"The partition is still {status['state']} ({status['operation']}) after {timeout:g} s and may become "
            f"ACTIVE yet: see 'vipu get partition {id}'."
        )
    if status["state"] != "ACTIVE":
        reason = " ".join(status["errors"]) or "no reason was given."
        raise Failed(
            f"The partition is there, but {status['state']}: {reason} Mend the cause and use "
            f"'vipu reset partition {id}'."
        )
