# SPDX-License-Identifier: GPL-3.0-or-later
"""Archive of the collection, built from a copy of the checkout, so that the checkout does not change."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from ..hosts.site import run, system_environment
from ..kubernetes.package import write_chart
from .site import BIN, CHECKOUT

# Sources of the wheel and of the chart, which the archive contains. galaxy.yml excludes them from the archive.
_PACKED = ("src/openipu", "charts", "pyproject.toml")


def files() -> Iterator[Path]:
    """Yield the files of the checkout that the archive depends on, without ignored ones. Raises ProcessError.

    Links are among them, such as the folder ``shared`` of the package openipu.
    """
    excluded = set(yaml.safe_load((CHECKOUT / "galaxy.yml").read_text())["build_ignore"])
    command = ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in map(Path, sorted(run(command, "list the files of the checkout").split("\0"))):
        packed = any(name.is_relative_to(source) for source in _PACKED)
        path = CHECKOUT / name
        if name.parts and (packed or name.parts[0] not in excluded) and (path.is_file() or path.is_symlink()):
            yield path


def inputs() -> list[str | Path]:
    """Return what the archive depends on: paths and files. Raises ProcessError."""
    return [
        part
        for path in files()
        for part in (path.relative_to(CHECKOUT).as_posix(), str(path.readlink()) if path.is_symlink() else path)
    ]


def copy_checkout(target: Path) -> None:
    """Copy the files that the archive depends on. Raises ProcessError."""
    for path in files():
        copy = target / path.relative_to(CHECKOUT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy, follow_symlinks=False)


def write_archive(target: Path) -> None:
    """Write the archive of the collection, with the wheel of openipu and the chart. Raises ProcessError."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        source, built = Path(scratch) / "source", Path(scratch) / "built"
        copy_checkout(source)
        environment = {**system_environment(), "VIRTUAL_ENV": str(BIN.parent)}
        wheels = source / "roles" / "openipu" / "files"
        wheel = [str(BIN / "uv"), "build", "--wheel", "--no-build-isolation", "--offline", "--quiet"]
        run([*wheel, f"--out-dir={wheels}", str(source)], "build the wheel", environment)
        (wheels / ".gitignore").unlink(missing_ok=True)  # written by uv
        chart = source / "roles" / "ipu_operator" / "files" / "ipu-operator-chart.tgz"
        chart.parent.mkdir(parents=True, exist_ok=True)
        write_chart(chart)
        galaxy = [str(BIN / "ansible-galaxy"), "collection", "build", f"--output-path={built}", str(source)]
        run(galaxy, "build the collection", {**environment, "PATH": f"{BIN}:{environment['PATH']}"})
        [archive] = built.glob("*.tar.gz")
        archive.rename(target)
