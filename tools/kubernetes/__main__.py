# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line: install, build, up, down."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ..commandline import Group, state_dir
from ..hosts.site import install_packages
from . import programs
from .control_plane import ControlPlane
from .site import STATE, missing


@click.group(cls=Group)
def main() -> None:
    """Run a Kubernetes control plane on loopback."""


@main.command()
def install() -> None:
    """Install missing programs from Debian packages. Does nothing without root or apt-get."""
    etcd = [] if programs.given() else missing({"etcd": "etcd-server"})
    install_packages([*etcd, *programs.missing_packages()], click.echo)


@main.command()
def build() -> None:
    """Build the programs if they are missing, and print their folder."""
    click.echo(programs.ensure_programs(click.echo))


@main.command()
@state_dir(STATE, "the control plane")
def up(state_dir: Path) -> None:
    """Start the control plane, and build its programs if they are missing. A running one is not changed."""
    begun = time.monotonic()
    folder = programs.ensure_programs(click.echo)
    plane = ControlPlane(state_dir)
    plane.up(folder)
    click.echo(
        f"The control plane is ready (after {time.monotonic() - begun:.1f} s). To use it:\n"
        f"  export KUBECONFIG={plane.site.kubeconfig()}\n  {folder / 'kubectl'} get namespaces\n"
        "To stop it: python -m tools.kubernetes down"
    )


@main.command()
@state_dir(STATE, "the control plane")
def down(state_dir: Path) -> None:
    """Stop the control plane and remove its files, except the programs."""
    found = ControlPlane(state_dir).down()
    click.echo("The control plane is stopped and its files are removed." if found else "No control plane is running.")


if __name__ == "__main__":
    main(prog_name="python -m tools.kubernetes")
