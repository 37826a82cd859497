# SPDX-License-Identifier: GPL-3.0-or-later
"""Archive of the operator: custom resource, documentation, chart, images and checksums.

The same inputs always result in the same bytes.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import yaml

from openipu.process.background import ProcessError
from tools import archives

from . import crd_reference, helm
from .site import CHECKOUT

DIST = CHECKOUT / "dist"
IMAGES = DIST / "gc-operator-images.tar"  # used if it exists
_DOCUMENTS = {
    "kubernetes.md": CHECKOUT / "docs/reference/kubernetes.md",
    "kubernetes-operator.md": CHECKOUT / "docs/reference/kubernetes-operator.md",
    "chart.md": helm.CHART / "README.md",
}
_CHART_SUMS, _OPERATOR_SUMS = "gc-ipu-operator-helm-chart.cksm", "gc-operator.cksm"
_IMAGES = "gc-operator-images.tar.gz"
_CHUNK = 1 << 20


def build(folder: Path, images: Path | None, report: Callable[[str], None]) -> Path:
    """Write the archive into a folder and return its path. Raises ProcessError.

    ``images``: archive of all images, in the form of ``podman save``. Without it, the package has none.
    """
    if images is not None and not tarfile.is_tarfile(images):
        raise ProcessError(f"Cannot package {images}: it is no tar archive. Write one with podman save.")
    version = str(yaml.safe_load((helm.CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"])
    name = f"gc-ipu-operator-v{version}"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        top = Path(scratch) / name
        (top / "CRDs").mkdir(parents=True)
        shutil.copyfile(helm.CRD, top / "CRDs" / helm.CRD.name)
        _write_documents(top / "docs")
        chart = top / f"gc-ipu-operator-helm-chart-v{version}.tgz"
        write_chart(chart)
        if images is None:
            report(f"The package has no {_IMAGES}. To add one, set --images to an archive of podman save.")
        else:
            _compress(images, top / _IMAGES)
        _write_sums(top, _CHART_SUMS, [chart])
        others = (path for path in top.rglob("*") if path.is_file() and path.name != _CHART_SUMS and path != chart)
        _write_sums(top, _OPERATOR_SUMS, others)
        result = folder / f"{name}.tar.gz"
        written = Path(scratch) / result.name
        _write_archive(written, {path.relative_to(top.parent).as_posix(): path for path in top.rglob("*")})
        written.replace(result)
    return result


def _write_documents(folder: Path) -> None:
    folder.mkdir()
    for name, path in _DOCUMENTS.items():
        text = path.read_text(encoding="utf-8")
        # Links to files that are not in the package become plain text.
        (folder / name).write_text(re.sub(r"\[([^\]]+)\]\((?!https?:|#)[^)]*\)", r"\1", text), encoding="utf-8")
    crd: Any = yaml.safe_load(helm.CRD.read_text(encoding="utf-8"))
    (folder / "ipujob.md").write_text(crd_reference.page(crd), encoding="utf-8")


def write_chart(target: Path) -> None:
    """Write the archive of the chart. Helm adds the time to its own, so that it is written again.

    Raises:
        ProcessError: when Helm cannot package the chart.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        done = helm.run("package", helm.CHART, "--destination", folder)
        if done.returncode:
            raise ProcessError(f"Cannot package the chart: {done.stderr.strip()}")
        [packaged] = folder.glob("*.tgz")
        with tarfile.open(packaged) as archive:
            archives.unpack(archive, folder)
        packaged.unlink()
        _write_archive(
            target, {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        )


def _write_sums(top: Path, name: str, paths: Iterable[Path]) -> None:
    """Write the SHA-256 checksums of files, as sha256sum reads them."""
    lines = []
    for path in sorted(paths):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.relative_to(top).as_posix()}\n")
    (top / name).write_text("".join(lines), encoding="utf-8")


def _write_archive(target: Path, paths: dict[str, Path]) -> None:
    """Write files without the time, owner and mode that they have here. ``paths``: name in the archive -> path."""
    with _compressed(target) as output, tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in sorted(paths.items()):
            entry = tarfile.TarInfo(name)
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
                continue
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)


def _compress(source: Path, target: Path) -> None:
    with source.open("rb") as file, _compressed(target) as output:
        shutil.copyfileobj(file, output, _CHUNK)


@contextlib.contextmanager
def _compressed(target: Path) -> Iterator[IO[bytes]]:
    """Open a gzip file without name and time in its header."""
    with target.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as output:
        yield cast(IO[bytes], output)
