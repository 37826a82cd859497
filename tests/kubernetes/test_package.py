# SPDX-License-Identifier: GPL-3.0-or-later
"""The package has the published files, and the same inputs result in the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from openipu.process.background import ProcessError
from tests.waiting import until
from tools import archives
from tools.kubernetes import helm, package
from tools.kubernetes.__main__ import main

VERSION = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())["appVersion"]
TOP = f"gc-ipu-operator-v{VERSION}"
CHART = f"gc-ipu-operator-helm-chart-v{VERSION}.tgz"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Return an archive in the form of ``podman save``."""
    (tmp_path / "manifest.json").write_text("[]")
    path = tmp_path / "images.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(tmp_path / "manifest.json", "manifest.json")
    return path


def extract(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as found:
        archives.unpack(found, folder)
    return folder / TOP


def test_the_package_has_the_published_files(tmp_path: Path, images: Path) -> None:
    top = extract(package.build(tmp_path / "dist", images, print), tmp_path)
    assert {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()} == {
        "CRDs/graphcore.ai_ipujobs.yaml",
        "docs/chart.md",
        "docs/ipujob.md",
        "docs/kubernetes-operator.md",
        "docs/kubernetes.md",
        CHART,
        "gc-operator-images.tar.gz",
        "gc-operator.cksm",
        "gc-ipu-operator-helm-chart.cksm",
    }
    assert gzip.decompress((top / "gc-operator-images.tar.gz").read_bytes()) == images.read_bytes()
    for name, count in (("gc-ipu-operator-helm-chart.cksm", 1), ("gc-operator.cksm", 6)):
        done = subprocess.run(["sha256sum", "--check", "--strict", name], cwd=top, capture_output=True, text=True)
        assert (done.returncode, done.stdout.count(": OK")) == (0, count), done.stderr
    done = helm.run("template", "gc", top / CHART)
    assert done.returncode == 0, done.stderr
    assert done.stdout == helm.run("template", "gc", helm.CHART).stdout
    assert (top / "docs/ipujob.md").read_text().startswith("# IPUJob\n")


def test_equal_inputs_result_in_equal_bytes(tmp_path: Path, images: Path) -> None:
    def digest(folder: str) -> str:
        return hashlib.sha256(package.build(tmp_path / folder, images, print).read_bytes()).hexdigest()

    first, second = digest("a"), int(time.time())
    until(lambda: int(time.time()) > second)  # archives store whole seconds
    assert digest("b") == first
    assert [path.name for path in (tmp_path / "b").iterdir()] == [f"{TOP}.tar.gz"]


def test_a_package_without_images_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.kubernetes.__main__.IMAGES", tmp_path / "missing.tar")
    done = CliRunner().invoke(main, ["package", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "The package has no gc-operator-images.tar.gz." in done.output
    names = {path.name for path in extract(tmp_path / f"{TOP}.tar.gz", tmp_path).rglob("*")}
    assert "gc-operator-images.tar.gz" not in names


def test_other_files_are_rejected_as_images(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_text("no archive")
    with pytest.raises(ProcessError, match="it is no tar archive"):
        package.build(tmp_path / "dist", path, print)
    assert not (tmp_path / "dist").exists()
