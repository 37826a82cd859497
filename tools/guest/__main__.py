# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: install, up, ssh, down."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from ..commandline import Group, state_dir
from ..hosts.site import install_packages
from . import guest
from .site import STATE, Site


@click.group(cls=Group)
def main() -> None:
    """A Poplar server in QEMU."""


@main.command()
def install() -> None:
    """Install the programs that are needed and not there, from Debian's packages, when that is allowed."""
    install_packages(guest.missing(), click.echo)


@main.command()
@state_dir(STATE, "the running guest")
@click.option(
    "--accelerator", type=click.Choice(["kvm", "tcg"]), help="What runs it; the fastest that works unless given."
)
@click.option("--outside", is_flag=True, help="Let it reach what this host reaches; without it only SSH goes in.")
def up(state_dir: Path, accelerator: str | None, outside: bool) -> None:
    """Start the guest and wait until one can log in; one that runs already stays as it is."""
    begun = time.monotonic()
    site = Site(state_dir)
    used = guest.up(site, accelerator or "", outside)
    how = "by the processor" if used == "kvm" else "by emulation"
    click.echo(
        f"The guest answers (run {how}, ready after {time.monotonic() - begun:.0f} s). To log in:\n"
        f"  ssh -F {site.ssh_config} guest\nIts console: {site.console}. To end it: python -m tools.guest down"
    )


@main.command(context_settings={"ignore_unknown_options": True})
@state_dir(STATE, "the running guest")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ssh(state_dir: Path, command: tuple[str, ...]) -> None:
    """Log in, or run a command there."""
    os.execvp("ssh", ["ssh", "-F", str(Site(state_dir).ssh_config), "guest", *command])  # noqa: S606, S607  the user's own


@main.command()
@state_dir(STATE, "the running guest")
def down(state_dir: Path) -> None:
    """End the guest and remove all it has kept."""
    there = guest.down(Site(state_dir))
    click.echo("The guest has ended and left nothing." if there else "No guest runs here.")


if __name__ == "__main__":
    main(prog_name="python -m tools.guest")
