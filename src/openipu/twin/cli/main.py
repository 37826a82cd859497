# SPDX-License-Identifier: GPL-3.0-or-later
"""Program ``twin``: start, inspect, break and stop a rack twin on loopback."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from openipu.process import network_namespace
from openipu.process.failures import Program, ProgramError, program_error
from openipu.shared.pod.model import MACHINES_PER_RACK
from openipu.shared.vipu.client import VipuError
from openipu.shared.vipu.ports import AGENT_PORT, CONTROLLER_PORT
from openipu.twin.cli import arrival, next_steps, summary
from openipu.twin.launch import hints, relay
from openipu.twin.launch.errors import TwinError
from openipu.twin.launch.generate import PodSize
from openipu.twin.launch.launcher import Twin
from openipu.twin.launch.rack_config import Options
from openipu.twin.rack import fault_lines, fault_script
from openipu.twin.rack.contract import twin as api

_INVENTORY = Path("inventory/twin/pod.yml")
_SHOWN_DEVICES = 4
_SHOWN_DEFECTS = 10
_Command = Callable[..., None]


def _report(message: str) -> None:
    click.echo(message)
    sys.stdout.flush()  # progress must not wait in the buffer of a pipe


def _command(function: _Command) -> _Command:
    """Add --state-dir to a command, and turn errors into a one-line message and exit status 1."""

    @click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=hints.STATE,
        show_default=True,
        envvar="TWIN_STATE_DIR",
        help="State folder of the twin.",
    )
    @wraps(function)
    def run(state_dir: Path, **options: Any) -> None:
        try:
            function(Twin(state_dir), **options)
        except (TwinError, VipuError, fault_lines.FaultError) as error:
            raise program_error(error) from None

    return run


class _Group(Program):
    """Command group that suggests ``twin fault`` for the verb of a fault."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, as click does; reject verbs of faults with a hint."""
        if args and args[0] in fault_lines.VERBS and args[0] not in self.commands:
            raise click.UsageError(f"No such command {args[0]!r}: it is a fault, so use 'twin fault {args[0]}'.", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="openipu", prog_name="twin", message="%(prog)s %(version)s")
def main() -> None:
    """Run a rack twin: the machines, devices and V-IPU controller of a POD as processes on loopback."""


@main.command()
@click.option(
    "--inventory",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Inventory of the POD: a pod.yml with loopback addresses.  [default: inventory/twin/pod.yml]",
)
@click.option(
    "--machines",
    type=click.IntRange(1, MACHINES_PER_RACK),
    help="Generate a POD: IPU-Machines per IPU-Link domain.",
)
@click.option("--ilds", type=click.IntRange(1, 16), help="Generate a POD: IPU-Link domains (racks) per cluster.")
@click.option("--clusters", type=click.IntRange(1, 15), help="Generate a POD: number of clusters.")
@click.option("--topology", type=click.Choice(("mesh", "torus")), help="Generate a POD: IPU-Link topology.")
@click.option(
    "--offset",
    type=click.IntRange(0, 250),
    help="Generate a POD: number added to the second octet of all addresses.",
)
@click.option(
    "--faults",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Faults to apply at the start, as for 'twin fault': a YAML list, or lines of text.",
)
@click.option(
    "--snmp-community",
    default="",
    help="Community that may read switches and PDUs over SNMPv1 and v2c. Omit it to accept SNMPv3 only.",
)
@click.option(
    "--discovery",
    is_flag=True,
    help="Make agents announce themselves on loopback, for 'vipu-admin discover agent'.",
)
@_command
def up(
    twin: Twin, inventory: Path | None, faults: Path | None, snmp_community: str, discovery: bool, **size: Any
) -> None:
    """Start the twin. Processes that already run are kept.

    The POD comes from an inventory. With one of the options for a generated POD, the twin generates the inventory:
    pod/pod.yml in the state folder.
    """
    generated = {name: value for name, value in size.items() if value is not None}
    if inventory and generated:
        raise click.UsageError(f"--inventory already defines the POD: omit --{', --'.join(generated)}.")
    if outside := relay.service(twin.folder).running():
        network_namespace.join(outside.pid)
    twin.options = Options(snmp_community, discovery)
    lines = fault_script.read(faults) if faults else []
    if generated:
        racks = generated.get("ilds", 1) * generated.pop("clusters", 1)
        twin.up(PodSize(**generated, racks=racks, devices=True), _report, lines)
    else:
        twin.up(inventory or _INVENTORY, _report, lines)
    identity = twin.identity()
    if identity and (generated or twin.folder != hints.STATE.absolute()):
        _report(f"Bring it up: {hints.playbook(twin.folder, identity.inventory, 'site')}")


@main.command()
@click.option("--keep-data", is_flag=True, help="Keep the configured objects for the next 'twin up'.")
@_command
def down(twin: Twin, keep_data: bool) -> None:
    """Stop the twin and remove its state folder."""
    twin.down(keep_data, _report)


def _devices(twin: Twin) -> str:
    """Return the endpoints of switches and PDUs and the URLs of metrics, as text."""
    lines = []
    for title, addresses in (("Switches", twin.addresses("switches")), ("PDUs", twin.addresses("pdus"))):
        if addresses:
            more = f" and {len(addresses) - _SHOWN_DEVICES} more" if len(addresses) > _SHOWN_DEVICES else ""
            lines.append(f"\n{title:17} {', '.join(addresses[:_SHOWN_DEVICES])}{more}")
    exporters = twin.exporters()
    first = next(iter(exporters["agents"].values()))
    lines.append(f"\n{'Metrics':17} {exporters['controller']}; of each IPU-Machine: {first} …")
    return "".join(lines)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_command
def status(twin: Twin, as_json: bool) -> None:
    """Show the state of controller and rack.

    Print the objects of the controller, the defects of the rack, and next steps.
    """
    stopped = [machine.agent_id for machine in twin.machines() if not machine.running]
    defects = twin.defects()
    with twin.client() as client:
        found = summary.read(client)
        connection = client.connection
    if as_json:
        more = {
            "state_dir": str(twin.folder),
            "metrics": twin.exporters(),
            "stopped_machines": stopped,
            "defects": [asdict(item) for item in defects],
        }
        _report(json.dumps({**found.as_json(), **more}, indent=2))
        return
    _report(found.text())
    _report(_devices(twin))
    if defects:
        messages = [item.message for item in defects[:_SHOWN_DEFECTS]]
        _report("\n".join(("", f"Defects (heal them with: {twin.command('heal')}):", *messages)))
        if len(defects) > _SHOWN_DEFECTS:
            _report(f"… and {len(defects) - _SHOWN_DEFECTS} more: {twin.command('faults')}")
    options = next_steps.options(connection)
    port = f"{found.agents[0].id if found.agents else 'AGENT'}:5"
    _report(
        f"\nInspect it:   {hints.program('vipu')} {options} list partitions"
        f"\n              {hints.program('vipu-admin')} {options} list agents"
        f"\nBreak it:     {twin.command('fault', 'unplug', port)}"
        f"\nStop it:      {'make twin-down' if _started_by_make(twin) else twin.command('down')}"
    )


def _started_by_make(twin: Twin) -> bool:
    """Return whether the twin is that of ``make bring-up``: with the default folder and POD, in a checkout."""
    identity = twin.identity()
    default = identity is not None and Path(identity.inventory) == _INVENTORY.absolute()
    return default and twin.folder == hints.STATE.absolute() and Path("Makefile").exists()


@main.command("stop-machine")
@click.argument("agents", nargs=-1, required=True)
@_command
def stop_machine(twin: Twin, agents: tuple[str, ...]) -> None:
    """Cut the power of IPU-Machines. They stay off until start-machine or heal, even when their PDU starts."""
    running = {machine.agent_id for machine in twin.machines() if machine.running}
    twin.control("StopMachines", api.MachineRequest(agent_ids=agents))
    if stopped := [agent for agent in agents if agent in running]:
        _report(f"Stopped: {', '.join(stopped)}. Start again: {twin.command('start-machine', *stopped)}")
    if before := [agent for agent in agents if agent not in running]:
        _report(f"Already stopped, and now stays off: {', '.join(before)}.")


@main.command("start-machine")
@click.argument("agents", nargs=-1)
@_command
def start_machine(twin: Twin, agents: tuple[str, ...]) -> None:
    """Start stopped IPU-Machines. Without arguments, start all of them.

    Wait until the controller has reached them, if it runs.
    """
    stopped = {machine.agent_id for machine in twin.machines() if not machine.running}
    twin.control("StartMachines", api.MachineRequest(agent_ids=agents))
    _report(f"Started: {', '.join(agents) or 'all machines'}.")
    started = stopped & {machine.agent_id for machine in twin.machines() if machine.running}
    try:
        client = twin.client()
    except TwinError:  # the rack runs without a controller
        return
    with client:
        for agent, reason in arrival.unreached(client, started).items():
            _report(f"The controller has not reached {agent} within {arrival.SECONDS:g} s: {reason or 'no reason'}")


class _FaultVerb(click.ParamType[str]):
    """Verb of a fault. ``fault_lines`` validates it together with its arguments."""

    name = "verb"

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Return the verbs."""
        return f"Choose from {', '.join(fault_lines.VERBS)}."

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the verbs that begin with ``incomplete``."""
        return [CompletionItem(verb) for verb in fault_lines.VERBS if verb.startswith(incomplete)]


_VERBS = "\n".join(f"  {f'{name} {verb.takes}':<38} {verb.does}" for name, verb in fault_lines.VERBS.items())


@main.command(
    help="Apply a fault to the rack, or heal it.\n\n\b\n"
    f"{_VERBS}\n\n"
    "Write a PORT as ag03:5 (IPU-Link), ag03:gw1 (GW-Link), ag03:sync6 (Sync-Link) or tor1:Ethernet9/1 (switch)."
)
@click.argument("verb", type=_FaultVerb())
@click.argument("words", nargs=-1, metavar="[ARGUMENT]...")
@_command
def fault(twin: Twin, verb: str, words: tuple[str, ...]) -> None:
    """Apply one fault."""
    parsed = fault_lines.parse(shlex.join((verb, *words)))
    line = shlex.join(parsed)
    twin.control("MakeFaults", api.MakeFaultsRequest(faults=[line]))
    _report("\n".join((f"Done: {line}", *next_steps.after(twin, parsed))))


@main.command()
@click.argument("agents", nargs=-1, metavar="[AGENT|DEVICE]...")
@_command
def heal(twin: Twin, agents: tuple[str, ...]) -> None:
    """Heal machines and devices, or the whole rack.

    Remove all their faults, as 'twin fault heal'.
    """
    twin.control("MakeFaults", api.MakeFaultsRequest(faults=[shlex.join(("heal", *agents))]))
    _report(f"Healed: {', '.join(agents) or 'everything'}.")


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_command
def faults(twin: Twin, as_json: bool) -> None:
    """List the defects of the rack."""
    defects = twin.defects()
    if as_json:
        _report(json.dumps([asdict(item) for item in defects], indent=2))
    else:
        _report("\n".join(item.message for item in defects) or "No defects.")


@main.command()
@click.option("--racks", type=click.IntRange(1, 250), default=1, show_default=True, help="Number of racks.")
@click.option(
    "--machines",
    type=click.IntRange(1, MACHINES_PER_RACK),
    default=16,
    show_default=True,
    help="IPU-Machines per rack.",
)
@click.option("--partitions", type=click.IntRange(0, 32), default=1, show_default=True, help="Partitions per rack.")
@click.option(
    "--offset",
    type=click.IntRange(0, 250),
    default=0,
    show_default=True,
    help="Number added to the second octet of all addresses.",
)
@click.option(
    "--controller-port",
    type=click.IntRange(1, 65535),
    default=CONTROLLER_PORT,
    show_default=True,
    help="TCP port of the V-IPU controller.",
)
@click.option(
    "--agent-port", type=click.IntRange(1, 65535), default=AGENT_PORT, show_default=True, help="TCP port of the agents."
)
@click.option("--devices/--no-devices", default=True, show_default=True, help="Add switches and PDUs to every rack.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def generate(folder: Path, **size: Any) -> None:
    """Generate the files of a POD.

    Write its pod.yml, machines.csv and group_vars into FOLDER.
    """
    if any((folder / name).exists() for name in ("pod.yml", "machines.csv")):
        raise ProgramError(f"Cannot write a POD to {folder}: it already holds one. Name another folder.")
    pod = PodSize(**size)
    try:
        path = pod.write(folder)
    except OSError as error:
        raise ProgramError(f"Cannot write {error.filename}: {error.strerror}.") from None
    machines = pod.racks * pod.machines
    start = f"{hints.program('twin')} up --inventory {shlex.quote(str(path))}"
    _report(f"Wrote {path}: {machines} IPU-Machines. Start it: {start}")


if __name__ == "__main__":
    main()
