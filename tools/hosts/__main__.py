# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line: install, up, run, down."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from ..commandline import Group, state_dir
from ..locks import folder_lock
from .host_environment import HostEnvironment
from .image import ensure_image
from .site import CACHE, STATE, check_requirements, install_packages, missing


@click.group(cls=Group)
def main() -> None:
    """Run hosts with systemd."""


@main.command()
def install() -> None:
    """Install missing programs from Debian packages. Does nothing without root or apt-get."""
    install_packages(missing(), click.echo)


@main.command()
@state_dir(STATE, "the hosts")
def up(state_dir: Path) -> None:
    """Create the environment of the hosts.

    Build its image if it is missing.
    """
    begun = time.monotonic()
    check_requirements()
    with folder_lock(CACHE):
        HostEnvironment(state_dir).up(ensure_image(click.echo))
    click.echo(
        f"The environment of the hosts is ready (after {time.monotonic() - begun:.1f} s). To run a command in it:\n"
        "  python -m tools.hosts run podman ps\nTo remove it: python -m tools.hosts down"
    )


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@state_dir(STATE, "the hosts")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(state_dir: Path, command: tuple[str, ...]) -> None:
    """Run a command in the network of the hosts.

    The command gets their podman and settings for Ansible.
    """
    environment = HostEnvironment(state_dir)
    line = environment.command_line(command)
    os.execvpe(line[0], line, {**os.environ, **environment.variables()})  # noqa: S606  the command of the user


@main.command()
@state_dir(STATE, "the hosts")
def down(state_dir: Path) -> None:
    """Stop all hosts and remove their files, except the image."""
    with folder_lock(CACHE):
        found = HostEnvironment(state_dir).down()
    click.echo("The hosts are stopped and their files are removed." if found else "No hosts are running.")


if __name__ == "__main__":
    main(prog_name="python -m tools.hosts")
