# SPDX-License-Identifier: GPL-3.0-or-later
"""``twin``: start, look at, break and stop a rack twin on loopback."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

import click
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import VipuError

from openipu.twin import summary
from openipu.twin.contract import twin as api
from openipu.twin.generate import Shape
from openipu.twin.twin import Twin, TwinError

_FAULTS = ("configure", "hang", "ipu", "none")
_Command = Callable[..., None]


def _say(sentence: str) -> None:
    click.echo(sentence)
    sys.stdout.flush()  # progress is for now, also into a pipe


def _command(function: _Command) -> _Command:
    """A command on the twin of --state-dir; what is wrong is one sentence and exit status 1."""

    @click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(".twin"),
        show_default=True,
        envvar="TWIN_STATE_DIR",
        help="Folder of the running twin.",
    )
    @wraps(function)
    def run(state_dir: Path, **options: Any) -> None:
        try:
            function(Twin(state_dir), **options)
        except (TwinError, VipuError) as error:
            raise click.ClickException(str(error)) from None

    return run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """A rack twin: the IPU-Machines and the V-IPU controller of a POD as processes on loopback."""


@main.command()
@click.option(
    "--inventory",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("inventory/twin/pod.yml"),
    show_default=True,
    help="The POD to be the twin of: a pod.yml with loopback addresses.",
)
@_command
def up(twin: Twin, inventory: Path) -> None:
    """Start the twin; what runs already stays."""
    twin.up(inventory, _say)


@main.command()
@click.option("--keep-data", is_flag=True, help="Leave the controller's data for the next 'twin up'.")
@_command
def down(twin: Twin, keep_data: bool) -> None:
    """Stop the twin and leave nothing behind."""
    twin.down(keep_data, _say)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@_command
def status(twin: Twin, as_json: bool) -> None:
    """Show what the twin's controller holds, and how to go on."""
    stopped = [machine.agent_id for machine in twin.machines() if not machine.running]
    with twin.client() as client:
        found = summary.read(client)
        connection = client.connection
    if as_json:
        _say(json.dumps({**found.as_json(), "state_dir": str(twin.folder), "stopped_machines": stopped}, indent=2))
        return
    _say(found.text())
    if stopped:
        _say(f"\nStopped by hand: {', '.join(stopped)} (start with: {_here('twin')} start-machine {' '.join(stopped)})")
    port = "" if connection.port == 8090 else f" --api-port {connection.port}"
    options = f"--api-host {connection.host}{port}"
    folder = "" if twin.folder == Path(".twin").absolute() else f" --state-dir {twin.folder}"
    _say(
        f"\nLook around:  {_here('vipu')} {options} list partitions"
        f"\n              {_here('vipu-admin')} {options} list agents"
        f"\nBreak it:     {_here('twin')} stop-machine{folder} {found.agents[0].id if found.agents else 'AGENT'}"
        f"\nStop it:      {'make twin-down' if not folder else _here('twin') + ' down' + folder}"
    )


@main.command("stop-machine")
@click.argument("agents", nargs=-1, required=True)
@_command
def stop_machine(twin: Twin, agents: tuple[str, ...]) -> None:
    """Let IPU-Machines lose their power."""
    twin.control("StopMachines", api.MachineRequest(agent_ids=agents))
    _say(f"Stopped: {', '.join(agents)}.")


@main.command("start-machine")
@click.argument("agents", nargs=-1)
@_command
def start_machine(twin: Twin, agents: tuple[str, ...]) -> None:
    """Start IPU-Machines that were stopped; all of them when none is named."""
    twin.control("StartMachines", api.MachineRequest(agent_ids=agents))
    _say(f"Started: {', '.join(agents) or 'all machines'}.")


@main.command()
@click.argument("agent")
@click.argument("kind", type=click.Choice(_FAULTS))
@click.option("--ipu", type=click.IntRange(0, 3), help="Which IPU fails, with the fault 'ipu'.")
@_command
def fault(twin: Twin, agent: str, kind: str, ipu: int | None) -> None:
    """Break an IPU-Machine, or heal it.

    'configure' refuses to bring IPUs up, 'hang' stops answering, 'ipu' makes one IPU fail now, 'none'
    heals.
    """
    if (kind == "ipu") != (ipu is not None):
        raise click.UsageError("The fault 'ipu' and the option --ipu go together.")
    request = api.SetFaultRequest(agent_id=agent, fault="" if kind == "none" else kind)
    if ipu is not None:
        request.ipu = ipu
    twin.control("SetFault", request)
    _say(f"{agent}: {'healed' if kind == 'none' else f'fault {kind} is set'}.")


@main.command()
@click.option("--racks", type=click.IntRange(1, 250), default=1, show_default=True)
@click.option("--machines", type=click.IntRange(1, 16), default=16, show_default=True, help="IPU-Machines in a rack.")
@click.option("--partitions", type=click.IntRange(0, 32), default=1, show_default=True, help="Partitions in a rack.")
@click.option("--offset", type=click.IntRange(0, 250), default=0, show_default=True, help="Added to x of 127.x.y.z.")
@click.option("--controller-port", type=click.IntRange(1, 65535), default=8090, show_default=True)
@click.option("--agent-port", type=click.IntRange(1, 65535), default=8080, show_default=True)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def generate(folder: Path, **shape: int) -> None:
    """Write pod.yml and machines.csv of a made-up POD into FOLDER."""
    if any((folder / name).exists() for name in ("pod.yml", "machines.csv")):
        raise click.ClickException(f"{folder} holds a POD already: name another folder.")
    wanted = Shape(**shape)
    try:
        path = wanted.write(folder)
    except OSError as error:
        raise click.ClickException(f"Cannot write {error.filename}: {error.strerror}.") from None
    _say(
        f"Wrote {path}: {asdict(wanted)['racks'] * wanted.machines} IPU-Machines. Start it: twin up --inventory {path}"
    )


def _here(command: str) -> str:
    """A command as the user of this Python would type it."""
    path = Path(sys.executable).parent / command
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


if __name__ == "__main__":
    main()
