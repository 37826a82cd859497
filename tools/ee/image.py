# SPDX-License-Identifier: GPL-3.0-or-later
"""Image of the execution environment: ansible-builder makes it of extensions/ee, without a registry.

The base image is a root file system of Debian packages, made on this machine. The image is in a read-only store in a
folder, whose name has a fingerprint of all inputs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from openipu.process.background import ProcessError

from ..kubernetes.cache import ensure
from ..kubernetes.roots import Root, ensure_root
from ..locks import folder_lock
from . import collection
from .podman import Podman
from .site import BIN, CACHE, DEFINITION, check_requirements
from .tools import ensure_tools
from .wheels import ensure_wheels

NAME = "localhost/openipu/pod-ee"
USER = "1000:0"  # user and group of jobs
_WHEELS = "/mnt"  # exists in the base image
LOG = CACHE / "ee-build.log"
_BASE = "localhost/openipu/ee-base"
_FOLDER = DEFINITION.parent
_CODE = ("collection.py", "image.py", "podman.py", "wheels.py")
_PACKAGES = _FOLDER / "packages.txt"
_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Image:
    """Image in a folder."""

    folder: Path

    @property
    def store(self) -> Path:
        """Read-only image store of podman."""
        return self.folder / "store"

    @property
    def figures(self) -> dict[str, float]:
        """Size in bytes, and build time in seconds without the base image and downloads."""
        found: dict[str, float] = json.loads((self.folder / "figures.json").read_text())
        return found


def packages() -> tuple[str, ...]:
    """Return the Debian packages of the base image."""
    lines = (line.partition("#")[0].strip() for line in _PACKAGES.read_text().splitlines())
    return tuple(line for line in lines if line)


def ensure_image(report: Callable[[str], None]) -> Image:
    """Return the image, which is built if it is missing. Raises ProcessError."""
    check_requirements()
    with folder_lock(CACHE):
        base = ensure_root(Root("ee", packages(), installed=True), report)
        wheels, tools = ensure_wheels(report), ensure_tools()
        code = [Path(__file__).with_name(name) for name in _CODE]
        inputs = [base.name, wheels.name, tools.name, *code, *collection.inputs()]

        def create(folder: Path) -> None:
            report("Building the execution environment …")
            folder.mkdir()
            _build(Image(folder), base, wheels, tools)

        image = Image(ensure("ee", inputs, create))
    size, seconds = image.figures["size"] / _MEGABYTE, image.figures["seconds"]
    report(f"Execution environment '{NAME}': {size:.0f} MB, built in {seconds:.0f} s.")
    return image


def _build(image: Image, base: Path, wheels: Path, tools: Path) -> None:
    begun = time.monotonic()
    scratch = image.folder / "scratch"
    scratch.mkdir()
    podman = Podman(scratch)
    podman("import", "--quiet", str(base), _BASE)
    definition = scratch / "definition"
    shutil.copytree(_FOLDER, definition)
    collection.write_archive(definition / "openipu-pod.tar.gz")
    # The home directory of the build is not part of the image.
    settings = scratch / "home" / ".config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[global]\nno-index = true\nfind-links = {_WHEELS}\ndisable-pip-version-check = true\n")
    # Without cached layers, no layer keeps files that a later step of its stage removes.
    options = ["--pull=never", "--layers=false", "--quiet"]
    options += [f"--volume={scratch / 'home'}:/root", f"--volume={wheels}:{_WHEELS}:ro"]
    command = [str(BIN / "python"), "-m", "ansible_builder", "build", f"--file={definition / DEFINITION.name}"]
    command += [f"--context={scratch / 'context'}", f"--tag={NAME}", f"--build-arg=EE_BASE_IMAGE={_BASE}"]
    command += ["--container-runtime=podman", f"--extra-build-cli-args={' '.join(options)}", "--verbosity=3"]
    with LOG.open("wb") as log:
        line = podman.command_line(*command, network=False)
        environment = {**podman.environment, "PYTHONPATH": str(tools)}
        done = subprocess.run(line, env=environment, stdout=log, stderr=log, check=False)  # noqa: S603
    if done.returncode:
        raise ProcessError(f"Cannot build the execution environment: ansible-builder failed (log: {LOG}).")
    podman("image", "prune", "--force")  # earlier stages
    size = int(podman("image", "inspect", "--format={{.Size}}", NAME))
    podman.store.rename(image.store)
    shutil.rmtree(scratch)
    figures = {"size": size, "seconds": time.monotonic() - begun}
    (image.folder / "figures.json").write_text(json.dumps(figures))
