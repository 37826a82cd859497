# SPDX-License-Identifier: GPL-3.0-or-later
"""Content of the images of the operator, as their archive has it."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools.kubernetes import programs
from tools.kubernetes.images import ALL, TARGETS, ensure_images, reference

MOST_BYTES = 250_000_000  # of an image, uncompressed
SHELLS = {"sh", "bash", "dash", "ash", "busybox"}
PACKAGE_MANAGERS = {"apt", "apt-get", "pip", "pip3"}  # dpkg is a dependency, and has no database


@dataclass(frozen=True)
class Image:
    """An image in an archive of ``podman save``."""

    config: dict[str, Any]
    files: dict[str, int]  # path -> bytes
    packages: list[str]  # URLs in the list of packages

    @property
    def programs(self) -> set[str]:
        """Names of the files in folders of programs."""
        return {path.rpartition("/")[2] for path in self.files if path.rpartition("/")[0].endswith("bin")}


def read(archive: Path) -> dict[str, Image]:
    """Return the images of an archive by their names."""
    found = {}
    with tarfile.open(archive) as whole:

        def member(name: str) -> Any:
            return whole.extractfile(name)

        for entry in json.load(member("manifest.json")):
            config = json.load(member(entry["Config"]))["config"]
            listed = config["Labels"]["io.openipu.sbom"].lstrip("/")
            files: dict[str, int] = {}
            packages: list[str] = []
            for layer in entry["Layers"]:
                with tarfile.open(fileobj=member(layer)) as content:
                    for each in content:
                        path = each.name.removeprefix("./")
                        files[path] = each.size
                        if path == listed:
                            packages = content.extractfile(each).read().decode().split()  # type: ignore[union-attr]
            [name] = entry["RepoTags"]
            found[name] = Image(config, files, packages)
    return found


@pytest.fixture(scope="module")
def images() -> dict[str, Image]:
    """Return the images, which are built if they are missing."""
    return read(ensure_images(programs.ensure_programs(print), print)[ALL])


@pytest.mark.parametrize("name", TARGETS)
def test_an_image_is_small_and_runs_without_rights(images: dict[str, Image], name: str) -> None:
    image = images[reference(name)]
    assert image.config["User"] == "65532:65532"
    assert not image.programs & (SHELLS | PACKAGE_MANAGERS)
    assert "var/lib/dpkg/status" not in image.files
    assert sum(image.files.values()) < MOST_BYTES
    assert ("kubectl" in image.programs) == (name == "gc-launcher")


@pytest.mark.parametrize("name", TARGETS)
def test_an_image_lists_all_its_packages(images: dict[str, Image], name: str) -> None:
    image = images[reference(name)]
    assert image.config["Labels"]["org.opencontainers.image.version"] in reference(name)
    debian = {path for path in image.files if path.startswith("var/lib/dpkg/status.d/") and image.files[path]}
    assert sum(each.startswith("pkg:deb/") for each in image.packages) == len(
        [path for path in debian if not path.endswith(".md5sums")]
    )
    python = {path.split("/")[2] for path in image.files if path.startswith("opt/openipu/") and ".dist-info" in path}
    assert sum(each.startswith("pkg:pypi/") for each in image.packages) == len(python)
    assert {"openipu", "grpcio"} <= {each.partition("@")[0].rpartition("/")[2] for each in image.packages}
