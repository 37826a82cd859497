# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: install, up, run, down."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from openipu.twin.processes import alone

from ..commandline import Group, state_dir
from .image import image
from .rig import Rig
from .site import CACHE, STATE, check_possible, install_packages, missing


@click.group(cls=Group)
def main() -> None:
    """Real systemd hosts."""


@main.command()
def install() -> None:
    """Install the programs that are needed and not there, from Debian's packages, when that is allowed."""
    install_packages(missing(), click.echo)


@main.command()
@state_dir(STATE, "the running hosts")
def up(state_dir: Path) -> None:
    """Make the image, if need be, and the place where hosts run."""
    begun = time.monotonic()
    check_possible()
    with alone(CACHE):
        Rig(state_dir).up(image(click.echo))
    click.echo(
        f"Hosts can run (ready after {time.monotonic() - begun:.1f} s). A command among them:\n"
        "  python -m tools.hosts run podman ps\nTo end them all: python -m tools.hosts down"
    )


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@state_dir(STATE, "the running hosts")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(state_dir: Path, command: tuple[str, ...]) -> None:
    """Run a command among the hosts: in their network, with their podman, Ansible set up to log in."""
    rig = Rig(state_dir)
    line = rig.inside(command)
    env = {**os.environ, **rig.environment()}
    os.execvpe(line[0], line, env)  # noqa: S606  it takes the place of this process


@main.command()
@state_dir(STATE, "the running hosts")
def down(state_dir: Path) -> None:
    """End all hosts and leave nothing of them but the image."""
    with alone(CACHE):
        there = Rig(state_dir).down()
    click.echo("The hosts have ended and left nothing." if there else "No hosts run here.")


if __name__ == "__main__":
    main(prog_name="python -m tools.hosts")
