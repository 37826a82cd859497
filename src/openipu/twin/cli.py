# SPDX-License-Identifier: GPL-3.0-or-later
"""``twin``: start, look at, break and stop a rack twin on loopback."""

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
from ansible_collections.openipu.pod.plugins.module_utils.pod.model import MACHINES_PER_RACK
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import VipuError

from openipu.twin import faults as fault_lines
from openipu.twin import script, summary
from openipu.twin.contract import twin as api
from openipu.twin.generate import Shape
from openipu.twin.twin import Twin, TwinError

_INVENTORY = Path("inventory/twin/pod.yml")
_STATE = Path(".twin")
_SHOWN_DEVICES = 4
_SHOWN_FAULTS = 10
_Command = Callable[..., None]


def _say(sentence: str) -> None:
    click.echo(sentence)
    sys.stdout.flush()  # progress is for now, also into a pipe


def _command(function: _Command) -> _Command:
    """A command on the twin of --state-dir; what is wrong is one sentence and exit status 1."""

    @click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=_STATE,
        show_default=True,
        envvar="TWIN_STATE_DIR",
        help="Folder of the running twin.",
    )
    @wraps(function)
    def run(state_dir: Path, **options: Any) -> None:
        try:
            function(Twin(state_dir), **options)
        except (TwinError, VipuError, fault_lines.FaultError) as error:
            raise click.ClickException(str(error)) from None

    return run


class _Group(click.Group):
    """Says of a fault that it is one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does."""
        if args and args[0] in fault_lines.VERBS and args[0] not in self.commands:
            raise click.UsageError(f"No such command {args[0]!r}: faults are made with 'twin fault {args[0]}'.", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """A rack twin: the IPU-Machines and the V-IPU controller of a POD as processes on loopback."""


@main.command()
@click.option(
    "--inventory",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The POD to be the twin of: a pod.yml with loopback addresses.  [default: inventory/twin/pod.yml]",
)
@click.option(
    "--machines", type=click.IntRange(1, MACHINES_PER_RACK), help="Make up a POD: IPU-Machines in an IPU-Link domain."
)
@click.option("--ilds", type=click.IntRange(1, 16), help="Make up a POD: IPU-Link domains, a rack each, in a cluster.")
@click.option("--clusters", type=click.IntRange(1, 15), help="Make up a POD: clusters.")
@click.option("--topology", type=click.Choice(("mesh", "torus")), help="Make up a POD: how IPU-Links are cabled.")
@click.option("--offset", type=click.IntRange(0, 250), help="Make up a POD: added to x of its addresses 127.x.y.z.")
@click.option(
    "--faults",
    type=click.Path(path_type=Path, dir_okay=False),
    help="What is wrong from the start: a list in YAML, or lines of text, of faults as of 'twin fault'.",
)
@_command
def up(twin: Twin, inventory: Path | None, faults: Path | None, **shape: Any) -> None:
    """Start the twin; what runs already stays.

    Its POD is that of an inventory, or one of any size that is made up: then its inventory is pod/pod.yml
    in the state folder.
    """
    made_up = {name: value for name, value in shape.items() if value is not None}
    if inventory and made_up:
        raise click.UsageError(f"An inventory says all about its POD: leave out --{', --'.join(made_up)}.")
    lines = script.read(faults) if faults else []
    if made_up:
        racks = made_up.get("ilds", 1) * made_up.pop("clusters", 1)
        twin.up(Shape(**made_up, racks=racks, devices=True), _say, lines)
    else:
        twin.up(inventory or _INVENTORY, _say, lines)
    identity = twin.identity()
    if identity and (made_up or twin.folder != _STATE.absolute()):
        # The inventories of twins find the switches' authority in this folder.
        folder = "" if made_up else f"TWIN_STATE_DIR={shlex.quote(str(twin.folder))} "
        _say(
            f"Bring it up: {folder}{_here('ansible-playbook')} playbooks/site.yml -i {shlex.quote(identity.inventory)}"
        )


@main.command()
@click.option("--keep-data", is_flag=True, help="Leave what was configured for the next 'twin up'.")
@_command
def down(twin: Twin, keep_data: bool) -> None:
    """Stop the twin and leave nothing behind."""
    twin.down(keep_data, _say)


def _devices(twin: Twin) -> str:
    """Where to find what stands around the machines, and the metrics of all."""
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
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@_command
def status(twin: Twin, as_json: bool) -> None:
    """Show what the twin's controller holds, and how to go on."""
    stopped = [machine.agent_id for machine in twin.machines() if not machine.running]
    wrong = twin.wrong()
    sentences = [item.sentence for item in wrong]
    with twin.client() as client:
        found = summary.read(client)
        connection = client.connection
    if as_json:
        more = {
            "state_dir": str(twin.folder),
            "metrics": twin.exporters(),
            "stopped_machines": stopped,
            "wrong": [asdict(item) for item in wrong],
        }
        _say(json.dumps({**found.as_json(), **more}, indent=2))
        return
    _say(found.text())
    _say(_devices(twin))
    folder = "" if twin.folder == _STATE.absolute() else f" --state-dir {twin.folder}"
    if wrong:
        _say(
            "\n".join(("", f"Wrong on purpose (heal with: {_here('twin')} heal{folder}):", *sentences[:_SHOWN_FAULTS]))
        )
        if len(wrong) > _SHOWN_FAULTS:
            _say(f"… and {len(wrong) - _SHOWN_FAULTS} more: {_here('twin')} faults{folder}")
    port = "" if connection.port == 8090 else f" --api-port {connection.port}"
    options = f"--api-host {connection.host}{port}"
    _say(
        f"\nLook around:  {_here('vipu')} {options} list partitions"
        f"\n              {_here('vipu-admin')} {options} list agents"
        f"\nBreak it:     {_here('twin')} fault{folder} unplug {found.agents[0].id if found.agents else 'AGENT'}:5"
        f"\nStop it:      {'make twin-down' if not folder else _here('twin') + ' down' + folder}"
    )


@main.command("stop-machine")
@click.argument("agents", nargs=-1, required=True)
@_command
def stop_machine(twin: Twin, agents: tuple[str, ...]) -> None:
    """Let IPU-Machines lose their power."""
    running = {machine.agent_id for machine in twin.machines() if machine.running}
    twin.control("StopMachines", api.MachineRequest(agent_ids=agents))
    if stopped := [agent for agent in agents if agent in running]:
        _say(f"Stopped: {', '.join(stopped)}.")
    if before := [agent for agent in agents if agent not in running]:
        _say(f"Already stopped: {', '.join(before)}.")


@main.command("start-machine")
@click.argument("agents", nargs=-1)
@_command
def start_machine(twin: Twin, agents: tuple[str, ...]) -> None:
    """Start IPU-Machines that were stopped; all of them when none is named."""
    twin.control("StartMachines", api.MachineRequest(agent_ids=agents))
    _say(f"Started: {', '.join(agents) or 'all machines'}.")


_VERBS = "\n".join(f"  {f'{name} {verb.takes}':<38} {verb.does}" for name, verb in fault_lines.VERBS.items())


@main.command(
    help="Break something, or heal it.\n\n\b\n"
    f"{_VERBS}\n\n"
    "A PORT is written ag03:5 (IPU-Link), ag03:gw1 (GW-Link) or ag03:sync6 (Sync-Link)."
)
@click.argument("verb", type=click.Choice(list(fault_lines.VERBS)), metavar="VERB")
@click.argument("words", nargs=-1)
@_command
def fault(twin: Twin, verb: str, words: tuple[str, ...]) -> None:
    """See ``help``."""
    line = shlex.join(fault_lines.parse(shlex.join((verb, *words))))
    twin.control("MakeFaults", api.MakeFaultsRequest(faults=[line]))
    _say(f"Done: {line}")


@main.command()
@click.argument("agents", nargs=-1, metavar="[AGENT|DEVICE]...")
@_command
def heal(twin: Twin, agents: tuple[str, ...]) -> None:
    """Make everything good again, of all IPU-Machines, switches and PDUs or of these (as 'twin fault heal' does)."""
    twin.control("MakeFaults", api.MakeFaultsRequest(faults=[shlex.join(("heal", *agents))]))
    _say(f"Healed: {', '.join(agents) or 'everything'}.")


@main.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@_command
def faults(twin: Twin, as_json: bool) -> None:
    """List what is wrong with the rack."""
    wrong = twin.wrong()
    if as_json:
        _say(json.dumps([asdict(item) for item in wrong], indent=2))
    else:
        _say("\n".join(item.sentence for item in wrong) or "Nothing is wrong.")


@main.command()
@click.option("--racks", type=click.IntRange(1, 250), default=1, show_default=True)
@click.option(
    "--machines",
    type=click.IntRange(1, MACHINES_PER_RACK),
    default=16,
    show_default=True,
    help="IPU-Machines in a rack.",
)
@click.option("--partitions", type=click.IntRange(0, 32), default=1, show_default=True, help="Partitions in a rack.")
@click.option("--offset", type=click.IntRange(0, 250), default=0, show_default=True, help="Added to x of 127.x.y.z.")
@click.option("--controller-port", type=click.IntRange(1, 65535), default=8090, show_default=True)
@click.option("--agent-port", type=click.IntRange(1, 65535), default=8080, show_default=True)
@click.option("--devices/--no-devices", default=True, show_default=True, help="Switches and PDUs in every rack.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def generate(folder: Path, **shape: Any) -> None:
    """Write pod.yml and machines.csv of a made-up POD into FOLDER."""
    if any((folder / name).exists() for name in ("pod.yml", "machines.csv")):
        raise click.ClickException(f"{folder} holds a POD already: name another folder.")
    wanted = Shape(**shape)
    try:
        path = wanted.write(folder)
    except OSError as error:
        raise click.ClickException(f"Cannot write {error.filename}: {error.strerror}.") from None
    machines = wanted.racks * wanted.machines
    _say(f"Wrote {path}: {machines} IPU-Machines. Start it: {_here('twin')} up --inventory {shlex.quote(str(path))}")


def _here(command: str) -> str:
    """A command as the user of this Python would type it."""
    path = Path(sys.executable).parent / command
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


if __name__ == "__main__":
    main()
