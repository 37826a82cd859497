# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: up, prepare, down."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ..commandline import Group, state_dir
from . import cloud
from .daemons import Daemons
from .network_node import NAMESPACES
from .site import ADMIN_CLOUD, CACHE, TENANTS

STATE = CACHE / "cloud"


@click.group(cls=Group)
def main() -> None:
    """A real OpenStack on loopback."""


@main.command()
@state_dir(STATE, "the running cloud")
@click.option("--network-only", is_flag=True, help="Only Keystone and Neutron.")
@click.option("--network-node", is_flag=True, help="With Open vSwitch and Neutron's DHCP agent; needs root.")
def up(state_dir: Path, network_only: bool, network_node: bool) -> None:
    """Start the cloud; what runs already stays as it is."""
    begun = time.monotonic()
    site = cloud.up(state_dir, network_only, network_node)
    seconds = time.monotonic() - begun
    click.echo(
        f"OpenStack answers at {site.url('keystone', '/v3')} (ready after {seconds:.0f} s). To use it:\n"
        f"  export OS_CLIENT_CONFIG_FILE={site.clouds} OS_CLOUD={ADMIN_CLOUD}\n"
        f"  {site.program('openstack')} network agent list\n"
        f"As a tenant: OS_CLOUD={TENANTS[0]} or {TENANTS[1]}. Its logs: {site.log}. To end it: make openstack-down"
    )
    if network_node:
        keeper = Daemons(site).pid(NAMESPACES)
        click.echo(f"Namespaces of its networks and routers: nsenter --mount --target {keeper} ip netns")


@main.command()
def prepare() -> None:
    """Make the databases that a cloud begins with, once; what starts one does that too."""
    cloud.prepare()


@main.command()
@state_dir(STATE, "the running cloud")
def down(state_dir: Path) -> None:
    """End the cloud and remove all it has kept."""
    there = cloud.down(state_dir)
    click.echo("OpenStack has ended and left nothing." if there else "No OpenStack runs here.")


if __name__ == "__main__":
    main(prog_name="python -m tools.openstack")
