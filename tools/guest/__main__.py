# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line: install, up, ssh, down."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from ..commandline import Group, state_dir
from ..hosts.site import install_packages
from . import cloud, guest
from .site import STATE, Site


@click.group(cls=Group)
def main() -> None:
    """Run a Poplar server in QEMU."""


@main.command()
@click.option("--cloud", "for_cloud", is_flag=True, help="Install the programs for the VM of a cloud and its networks.")
def install(for_cloud: bool) -> None:
    """Install missing programs from Debian packages. Does nothing without root or apt-get."""
    install_packages(cloud.missing() if for_cloud else guest.missing(), click.echo)


@main.command()
@state_dir(STATE, "the guest")
@click.option(
    "--accelerator",
    type=click.Choice(["kvm", "tcg"]),
    help="Accelerator of QEMU. Default: kvm if it works, otherwise tcg.",
)
@click.option("--outside", is_flag=True, help="Allow connections from the guest. Default: only SSH to the guest.")
def up(state_dir: Path, accelerator: str | None, outside: bool) -> None:
    """Start the guest and wait for SSH. A running guest is not changed."""
    begun = time.monotonic()
    site = Site(state_dir)
    used = guest.up(site, accelerator or "", outside)
    click.echo(
        f"The guest is ready (accelerator {used}, after {time.monotonic() - begun:.0f} s). To log in:\n"
        f"  ssh -F {site.ssh_config} guest\nConsole: {site.console}. To stop it: python -m tools.guest down"
    )


@main.command(context_settings={"ignore_unknown_options": True})
@state_dir(STATE, "the guest")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ssh(state_dir: Path, command: tuple[str, ...]) -> None:
    """Log in to the guest, or run a command in it."""
    os.execvp("ssh", ["ssh", "-F", str(Site(state_dir).ssh_config), "guest", *command])  # noqa: S606, S607  the command of the user


@main.command()
@state_dir(STATE, "the guest")
def down(state_dir: Path) -> None:
    """Stop the guest and remove its files."""
    found = guest.down(Site(state_dir))
    click.echo("The guest is stopped and its files are removed." if found else "No guest is running.")


if __name__ == "__main__":
    main(prog_name="python -m tools.guest")
