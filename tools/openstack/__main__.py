# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line: up, prepare, down."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ..commandline import Group, state_dir
from . import cloud, dashboard
from .bare_metal import bmc_variables
from .daemons import Daemons
from .network_node import NAMESPACES
from .site import ADMIN_CLOUD, CACHE, TENANTS

STATE = CACHE / "cloud"


@click.group(cls=Group)
def main() -> None:
    """Run an OpenStack on loopback."""


@main.command()
@state_dir(STATE, "the running services")
@click.option("--network-only", is_flag=True, help="Start only Keystone and Neutron.")
@click.option(
    "--network-node", is_flag=True, help="Also start Open vSwitch and Neutron's DHCP and L3 agents; needs root."
)
@click.option("--horizon", is_flag=True, help="Also start Horizon with the panel of IPUs.")
@click.option(
    "--pod",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="JSON file with Horizon's setting OPENIPU_POD. Omit to keep the current one.",
)
@click.option("--bare-metal", is_flag=True, help="Also start Ironic and emulated BMCs.")
def up(
    state_dir: Path, network_only: bool, network_node: bool, horizon: bool, pod: Path | None, bare_metal: bool
) -> None:
    """Start the cloud. Running processes are not changed."""
    if network_only and horizon:
        raise click.UsageError("Horizon needs a complete cloud. Omit --network-only.")
    begun = time.monotonic()
    site = cloud.up(state_dir, network_only, network_node, horizon, pod, bare_metal)
    seconds = time.monotonic() - begun
    click.echo(
        f"OpenStack is ready at {site.url('keystone', '/v3')} (after {seconds:.0f} s). To use it:\n"
        f"  export OS_CLIENT_CONFIG_FILE={site.clouds} OS_CLOUD={ADMIN_CLOUD}\n"
        f"  {site.program('openstack')} network agent list\n"
        f"As a tenant: OS_CLOUD={TENANTS[0]} or {TENANTS[1]}. Logs: {site.log}. To stop it: make openstack-down"
    )
    if horizon:
        click.echo(f"Horizon: {dashboard.url(site)} (domain Default; passwords are in {site.clouds})")
    if network_node:
        holder = Daemons(site).pid(NAMESPACES)
        click.echo(f"Namespaces of its networks and routers: nsenter --mount --target {holder} ip netns")
    if bare_metal:
        click.echo(f"BMCs, as variables of playbooks: {bmc_variables(site)}")


@main.command()
def prepare() -> None:
    """Create the initial databases of clouds, if they are missing. The command up includes this."""
    cloud.prepare()


@main.command()
@state_dir(STATE, "the running services")
def down(state_dir: Path) -> None:
    """Stop the cloud and remove its files."""
    found = cloud.down(state_dir)
    click.echo("OpenStack is stopped and its files are removed." if found else "No OpenStack is running.")


if __name__ == "__main__":
    main(prog_name="python -m tools.openstack")
