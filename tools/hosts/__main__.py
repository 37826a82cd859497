# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: install, up, run, down."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from openipu.twin.processes import ProcessError, alone

from .image import image
from .rig import Rig
from .site import CACHE, STATE, check_possible, install_packages, missing

state_dir = click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    default=STATE,
    help="The folder of the running hosts; removed by down.",
)


@click.group()
def main() -> None:
    """Real systemd hosts."""


@main.command()
def install() -> None:
    """Install the programs that are needed and not there, from Debian's packages, when that is allowed."""
    try:
        install_packages(missing(), click.echo)
    except ProcessError as error:
        raise click.ClickException(str(error)) from None


@main.command()
@state_dir
def up(state_dir: Path) -> None:
    """Make the image, if need be, and the place where hosts run."""
    begun = time.monotonic()
    try:
        check_possible()
        with alone(CACHE):
            Rig(state_dir).up(image(click.echo))
    except ProcessError as error:
        raise click.ClickException(str(error)) from None
    click.echo(
        f"Hosts can run (ready after {time.monotonic() - begun:.1f} s). A command among them:\n"
        "  python -m tools.hosts run podman ps\nTo end them all: python -m tools.hosts down"
    )


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@state_dir
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(state_dir: Path, command: tuple[str, ...]) -> None:
    """Run a command among the hosts: in their network, with their podman, Ansible set up to log in."""
    rig = Rig(state_dir)
    try:
        line = rig.inside(command)
        env = {**os.environ, **rig.environment()}
    except ProcessError as error:
        raise click.ClickException(str(error)) from None
    os.execvpe(line[0], line, env)  # noqa: S606  it takes the place of this process


@main.command()
@state_dir
def down(state_dir: Path) -> None:
    """End all hosts and leave nothing of them but the image."""
    try:
        with alone(CACHE):
            there = Rig(state_dir).down()
    except ProcessError as error:
        raise click.ClickException(str(error)) from None
    click.echo("The hosts have ended and left nothing." if there else "No hosts run here.")


if __name__ == "__main__":
    main(prog_name="python -m tools.hosts")
