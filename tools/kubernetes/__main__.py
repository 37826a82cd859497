# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line: install, build, images, up, enter, down, isolate, chart, package."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import click

from openipu.process.background import ProcessError

from ..commandline import Group, state_dir
from ..hosts.site import install_packages
from . import generated, isolation, programs
from .control_plane import ControlPlane
from .images import ALL, ensure_images
from .isolated_cluster import IsolatedCluster
from .package import DIST, IMAGES, write_chart
from .package import build as build_package
from .site import CHECKOUT, STATE, missing


@click.group(cls=Group)
def main() -> None:
    """Run a Kubernetes control plane on loopback."""


@main.command()
def install() -> None:
    """Install missing programs from Debian packages. Does nothing without root or apt-get."""
    etcd = [] if programs.given() else missing({"etcd": "etcd-server"})
    install_packages([*etcd, *programs.missing_packages(), *missing(isolation.PACKAGES)], click.echo)


@main.command()
def build() -> None:
    """Build the programs if they are missing, and print their folder."""
    click.echo(programs.ensure_programs(click.echo))


@main.command()
def images() -> None:
    """Build missing images.

    These are the images of the operator and of the tests. Copy those of the operator to dist/.
    """
    isolation.check_requirements()
    built = ensure_images(programs.ensure_programs(click.echo), click.echo)
    DIST.mkdir(exist_ok=True)
    shutil.copyfile(built[ALL], IMAGES)
    click.echo(f"The images of the operator are in {IMAGES}. To load them: podman load --input {IMAGES}")


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def isolate(context: click.Context, command: tuple[str, ...]) -> None:
    """Run a command in the namespaces of a node.

    It needs root. Use it for tests with real pods, for example.
    """
    context.exit(isolation.run_isolated(command))


@main.command()
@state_dir(STATE, "the control plane")
@click.option("--node", is_flag=True, help="Also start a node that runs real pods (needs root).")
def up(state_dir: Path, node: bool) -> None:
    """Start the control plane.

    Build its programs if they are missing. A running control plane is not changed.
    """
    begun = time.monotonic()
    if node:
        IsolatedCluster(state_dir).up(click.echo)
        use = "  python -m tools.kubernetes enter kubectl get nodes"
    else:
        folder = programs.ensure_programs(click.echo)
        plane = ControlPlane(state_dir)
        plane.up(folder)
        use = f"  export KUBECONFIG={plane.site.kubeconfig()}\n  {folder / 'kubectl'} get namespaces"
    click.echo(
        f"The {'node' if node else 'control plane'} is ready (after {time.monotonic() - begun:.1f} s). To use it:\n"
        f"{use}\nTo stop it: python -m tools.kubernetes down"
    )


@main.command("run-node", hidden=True)
@state_dir(STATE, "the control plane")
def run_node(state_dir: Path) -> None:
    """Run a control plane and its node in the namespaces of this process."""
    IsolatedCluster(state_dir).run()


@main.command(context_settings={"ignore_unknown_options": True})
@state_dir(STATE, "the control plane")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def enter(context: click.Context, state_dir: Path, command: tuple[str, ...]) -> None:
    """Run a command in the namespaces of the node of 'up --node', for example kubectl or helm (needs root)."""
    entered, environment = IsolatedCluster(state_dir).entered(command)
    context.exit(subprocess.run(entered, env=environment, check=False).returncode)  # noqa: S603  command of the caller


@main.command()
@state_dir(STATE, "the control plane")
def down(state_dir: Path) -> None:
    """Stop the control plane and its node, and remove its files, except the programs."""
    found = IsolatedCluster(state_dir).down() or ControlPlane(state_dir).down()
    click.echo("The control plane is stopped and its files are removed." if found else "No control plane is running.")


@main.command("chart-archive")
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False))
def chart_archive(target: Path) -> None:
    """Write the archive of the chart; equal charts give equal bytes."""
    write_chart(target)


@main.command()
@click.option("--check", is_flag=True, help="Change nothing, and fail if a file is outdated.")
def chart(check: bool) -> None:
    """Generate files from the chart.

    These are the list of values in its README.md, and the manifests for kustomize.
    """
    changed = [str(path.relative_to(CHECKOUT)) for path in (generated.stale() if check else generated.write())]
    if check and changed:
        raise ProcessError(f"Outdated: {', '.join(changed)}. Run: python -m tools.kubernetes chart")
    click.echo(f"Written: {', '.join(changed)}" if changed else "All files are up to date.")


@main.command()
@click.option(
    "--images",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help=f"Archive of all images. The default is {IMAGES.relative_to(CHECKOUT)}, if it exists.",
)
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), default=DIST, help="Folder of the package.")
def package(images: Path | None, output: Path) -> None:
    """Build the package of the operator.

    It contains custom resource, documentation, chart, images and checksums.
    """
    found = images or (IMAGES if IMAGES.exists() else None)
    click.echo(f"Written: {build_package(output, found, click.echo)}")


if __name__ == "__main__":
    main(prog_name="python -m tools.kubernetes")
