# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line: install, build, save, run."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import click

from ..commandline import Group
from ..hosts.site import install_packages
from .image import NAME, USER, ensure_image
from .podman import Podman
from .site import CACHE, missing


@click.group(cls=Group)
def main() -> None:
    """Build and run the execution environment for AWX."""


@main.command()
def install() -> None:
    """Install missing programs from Debian packages. Does nothing without root or apt-get."""
    install_packages(missing(), click.echo)


@main.command()
def build() -> None:
    """Build the image if it is missing or its inputs changed, and print its size and build time."""
    ensure_image(click.echo)


@main.command()
@click.argument("archive", type=click.Path(path_type=Path, dir_okay=False))
def save(archive: Path) -> None:
    """Write the image to an archive for podman, containerd and docker."""
    image = ensure_image(click.echo)
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        Podman(Path(scratch), image.store)("save", "--quiet", f"--output={archive.absolute()}", NAME)
    click.echo(
        f"Wrote {archive}: {archive.stat().st_size / 1_000_000:.0f} MB. To load it: podman load --input {archive}"
    )


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(command: tuple[str, ...]) -> None:
    """Run a command in a container, as user 1000 of group 0, with the network of this machine."""
    image = ensure_image(lambda message: click.echo(message, err=True))
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        podman = Podman(Path(scratch), image.store)
        line = podman.command_line(
            "podman", "run", "--rm", "--interactive", "--network=host", f"--user={USER}", NAME, *command
        )
        status = subprocess.run(line, env=podman.environment, check=False).returncode  # noqa: S603
    sys.exit(status)


if __name__ == "__main__":
    main(prog_name="python -m tools.ee")
