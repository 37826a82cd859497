# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from openipu.shared.vipu.names import GW_ROUTING, ROUTING, SYNC_TYPE
from openipu.vipu.cli import ipuof_files, listing, output
from openipu.vipu.cli.grammar import Count, EnumName, Id, command
from openipu.vipu.cli.session import Progress, Session, VipuCommandError

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


def _wait_options(function: _F) -> _F:
    """Add the options of commands that wait."""
    function = click.option("--no-wait", is_flag=True, help="Do not wait for ACTIVE, and write no files.")(function)
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0),
        default=120.0,
        show_default=True,
        help="Seconds to wait for ACTIVE.",
    )(function)


@command("create", "partition")
@click.argument("id", type=Id("partition", existing=False))
@click.option("--size", type=_COUNT, required=True, help="Number of IPUs, a power of two.")
@click.option("--allocation", type=Id("allocation"), help="Allocation of the IPUs.  [default: best fit of yours]")
@click.option("--cluster", type=Id("cluster"), help="Cluster of the IPUs. Deprecated: use --allocation.")
@click.option(
    "--num-gcds", "--gcds", type=_COUNT, help="Number of graph compilation domains, with equal shares of the IPUs."
)
@click.option(
    "--gcd-sync-replicas",
    "--total-num-replicas",
    "num_replicas",
    type=_COUNT,
    help="Number of replicas that synchronise.  [default: one per GCD]",
)
@click.option("--routing", type=EnumName(ROUTING), help="IPU-Link routing.  [default: by size and topology]")
@click.option("--gw-routing", type=EnumName(GW_ROUTING), help="GW-Link routing between IPU-Link domains.")
@click.option("--num-ipulink-segments", "num_segments", type=_COUNT, help="Number of IPU-Link domains to use.")
@click.option(
    "--sync-type", type=EnumName(SYNC_TYPE), help="Synchronisation type; --reconfigurable needs c2-compatible."
)
@click.option("--reconfigurable", is_flag=True, help="Allow programs to choose the number of IPUs of a device.")
@click.option("--disable-auto-reset", is_flag=True, help="Disable automatic resets after faults.")
@click.option("--relocatable", is_flag=True, help="Move the partition to free IPUs when one of its IPU-Machines fails.")
@click.option("--index", hidden=True, help="Not supported: undocumented flag of Graphcore's command line.")
@_wait_options
def create_partition(
    session: Session,
    /,
    id: str,
    index: str | None,
    no_wait: bool,
    timeout: float,
    **fields: Any,
) -> None:
    """Create a partition.

    Without --allocation, the controller chooses the best fit among all allocations that you may use, and the command
    prints its choice. Wait until the partition is ACTIVE, and write its IPUoF configuration to ~/.ipuof.conf.d.
    """
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.contract import virmgrpc

    if index is not None:
        # Graphcore's guides mention the flag, but not its meaning.
        raise VipuCommandError(
            "this controller does not support --index. Omit it, or choose the IPUs with option ipus of the module "
            "openipu.pod.vipu_partition or a PartitionSpec of the API."
        )
    request = virmgrpc.CreatePartitionRequest(**objects.partition_creation({"id": id, **fields}))
    session.call("user", "CreatePartition", request)
    files = []
    if not no_wait:
        _wait_active(session, id, timeout)
        files = ipuof_files.write(id, _ipuof_config(session, id))
    allocation = fields["allocation"] or _chosen_allocation(session, id)
    if allocation and not fields["allocation"] and not session.json:
        # On standard error, because scripts compare the line on standard output.
        click.echo(f"Note: partition {id!r} is in allocation {allocation!r}.", err=True)
    _note_files(session, files)
    session.succeed(files=[str(path) for path in files], allocation=allocation)


def _note_files(session: Session, files: Sequence[Path]) -> None:
    """Print the written files on standard error, because scripts compare the line on standard output."""
    if files and not session.json:
        click.echo(f"Note: wrote the IPUoF configuration to {', '.join(map(str, files))}.", err=True)


def _chosen_allocation(session: Session, id: str) -> str | None:
    """Return the allocation of a new partition, None when it cannot be read: the partition exists in any case."""
    from openipu.shared.vipu.client import VipuError

    try:
        found = listing.read(session, "partition")
    except VipuError:
        return None
    return next((item["allocation"] or None for item in found if item["id"] == id), None)


@command("reset", "partition")
@click.argument("id", type=PARTITION)
@click.option("--relocatable", is_flag=True, help="Allow this reset to move the partition to other free IPUs.")
@_wait_options
def reset_partition(session: Session, id: str, relocatable: bool, no_wait: bool, timeout: float) -> None:
    """Configure a partition again.

    Wait until the partition is ACTIVE.
    """
    from openipu.shared.vipu.contract import virmgrpc

    session.call("user", "ResetPartition", virmgrpc.ResetPartitionRequest(partition_id=id, relocatable=relocatable))
    files = []
    if not no_wait:
        _wait_active(session, id, timeout)
        if ipuof_files.present(id):  # its IPUs may have changed
            files = ipuof_files.write(id, _ipuof_config(session, id))
    _note_files(session, files)
    session.succeed(files=[str(path) for path in files])


@command("remove", "partition")
@click.argument("id", type=PARTITION)
@click.option("--force", is_flag=True, help="Remove the partition even when an IPU-Machine does not respond.")
def remove_partition(session: Session, id: str, force: bool) -> None:
    """Remove a partition and its files in ~/.ipuof.conf.d."""
    from openipu.shared.vipu.client import REMOVAL_SECONDS
    from openipu.shared.vipu.contract import virmgrpc

    # The names of its files depend on its number of GCDs, which cannot be read after the removal.
    num_gcds = 0
    if ipuof_files.present(id):
        num_gcds = next((item["num_gcds"] for item in listing.read(session, "partition") if item["id"] == id), 0)
    request = virmgrpc.RemovePartitionRequest(partition_id=id, force=force)
    session.call("user", "RemovePartition", request, REMOVAL_SECONDS)
    ipuof_files.remove(id, num_gcds)
    session.succeed()


@command("list", "partitions")
@click.option("--allocation", type=Id("allocation"), help="Only partitions of this allocation.")
def list_partitions(session: Session, allocation: str | None) -> None:
    """Show all partitions."""
    found = listing.read(session, "partition", allocation_id=allocation or "")
    if allocation and not found:
        _check_allocation(session, allocation)
    session.show(found, output.table(LIST_HEADER, map(list_row, found), ruled=False))


def _check_allocation(session: Session, allocation: str) -> None:
    """Raise VipuCommandError when the allocation does not exist: the public API returns an empty list for it."""
    from openipu.shared.vipu.client import VipuError

    try:
        known = listing.ids(session, "allocation")
    except VipuError as error:
        if error.code != "UNIMPLEMENTED":
            raise
        return
    if allocation not in known:
        remedy = f"choose from {', '.join(known)}" if known else "you may not use any allocation"
        raise VipuCommandError(f"there is no allocation {allocation!r}: {remedy}.")


@command("get", "partition")
@click.argument("id", type=PARTITION)
@click.option("--gcd", type=click.IntRange(min=0), help="Show only the IPUoF configuration of this GCD.")
@click.option(
    "--ipuof-configs",
    "--ipu-configs",
    "ipuof_configs",
    is_flag=True,
    help="Show the IPUoF configuration as JSON, after one line of text.",
)
def get_partition(session: Session, id: str, gcd: int | None, ipuof_configs: bool) -> None:
    """Show a partition or its IPUoF configuration.

    With --gcd, print only the configuration of that GCD, as in its file. Without --gcd, --ipuof-configs prints a list
    if the partition has several GCDs.
    """
    from openipu.shared.vipu import ipuof, objects
    from openipu.shared.vipu.contract import virmgrpc

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
        raise VipuCommandError(f"Cannot show partition {id!r}: another client has removed it. Create it again.")
    found.update(_options(session, id))
    session.show({**found, **status}, full(found, status))


def _options(session: Session, id: str) -> dict[str, bool]:
    """Return the options that are not in the public API, none when the controller offers only that API."""
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.client import VipuError
    from openipu.shared.vipu.contract import admin

    try:
        reply = session.call("tenant", "ListPartitionOptions", admin.ListPartitionOptionsRequest(partition_ids=[id]))
    except VipuError as error:
        if error.code != "UNIMPLEMENTED":
            raise
        return {}
    return next((objects.partition_options(item) for item in reply.partitions), {})


_OPTIONS = {"disable_auto_reset": "Auto Reset Disabled", "relocatable": "Relocatable"}


def list_row(item: dict[str, Any]) -> tuple[output.Cell, ...]:
    """Return the row of a partition. Its first cell is never blank, which would continue the previous row."""
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
    """Return a partition and its status in text form: a block and a table of its IPUs."""
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
    from openipu.shared.vipu.contract import virmgrpc

    request = virmgrpc.GetPartitionIpuofConfigRequest(partition_id=id)
    if gcd is not None:
        request.gcd_id.id = gcd
    return session.call("user", "GetPartitionIpuofConfig", request).ipuof_config


def _wait_active(session: Session, id: str, timeout: float) -> None:
    """Wait until a partition is ACTIVE. Raises VipuCommandError after ``timeout`` seconds, or in state ERROR."""
    from openipu.shared.vipu import objects
    from openipu.shared.vipu.client import settled, wait_partition

    progress = Progress(session)

    def ended(message: Any) -> bool:
        if settled(message):
            return True
        status = objects.status(message)
        progress.note(f"partition {id!r} is {status['state']} ({status['operation']})")
        return False

    done, message = wait_partition(session.client, id, timeout, ended)
    status = objects.status(message)
    if not done:
        raise VipuCommandError(
            f"The partition is still {status['state']} ({status['operation']}) after {timeout:g} s. The operation "
            f"continues: see 'vipu get partition {id}'."
        )
    if status["state"] != "ACTIVE":
        reason = " ".join(status["errors"]) or "the controller reports no reason."
        raise VipuCommandError(
            f"The partition exists, but is {status['state']}: {reason} Fix the cause and use "
            f"'vipu reset partition {id}'."
        )
