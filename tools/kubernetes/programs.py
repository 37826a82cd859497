# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of Kubernetes: those in KUBEBUILDER_ASSETS, or built once from the source package of Debian.

No registry of packages has servers of Kubernetes as binaries. The build takes 13 CPU minutes, and is kept until its
inputs change.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from openipu.process.background import ProcessError

from ..hosts.image import apt_sources
from ..hosts.site import run, system_environment
from ..locks import folder_lock
from .site import CACHE, missing

SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
GIVEN = (*SERVERS, "kubectl", "etcd")  # expected in KUBEBUILDER_ASSETS
BUILT = (*SERVERS, "kubectl", "kubelet", "kube-proxy")
_BUILD = Path(__file__).with_name("build.sh")
# Program or file -> Debian package.
_BUILD_PACKAGES = {
    "/usr/lib/go-1.19/bin/go": "golang-1.19-go",
    "/usr/share/gocode/src/github.com/modern-go/reflect2": "golang-github-modern-go-reflect2-dev",
    "dpkg-source": "dpkg-dev",
    "make": "make",
    "rsync": "rsync",
    "strip": "binutils",
}
_SOURCE_LINE = re.compile(r"^deb\b", re.MULTILINE)
_SOURCE_TYPES = re.compile(r"^Types:.*$", re.MULTILINE)


def given() -> Path | None:
    """Return the folder in KUBEBUILDER_ASSETS, None when it is not set. Raises ProcessError when it lacks programs."""
    value = os.environ.get("KUBEBUILDER_ASSETS")
    if not value:
        return None
    folder = Path(value)
    if absent := [name for name in GIVEN if not (folder / name).is_file()]:
        raise ProcessError(
            f"Cannot use KUBEBUILDER_ASSETS ({value}): it has no {', '.join(absent)}. Add them, or unset the variable."
        )
    return folder


def missing_packages() -> list[str]:
    """Return the missing Debian packages for a build, none when there is nothing to build."""
    return [] if given() or _built().exists() else missing(_BUILD_PACKAGES)


def ensure_programs(report: Callable[[str], None]) -> Path:
    """Return the folder with the programs, which are built if they are missing. Raises ProcessError."""
    if folder := given():
        return folder
    with folder_lock(CACHE):
        built = _built()
        if not built.exists():
            _build(built, report)
        return built


def minor_version(folder: Path) -> int:
    """Return the minor version of the API server, for example 20."""
    text = run([str(folder / "kube-apiserver"), "--version"], "read the version of Kubernetes")
    match = re.search(r"v1\.(\d+)", text)
    if match is None:
        raise ProcessError(f"Cannot read the version of Kubernetes: '{text.strip()}' is not a version.")
    return int(match[1])


def _built() -> Path:
    digest = hashlib.sha256(repr(BUILT).encode() + _BUILD.read_bytes())
    return CACHE / f"programs-{digest.hexdigest()[:12]}"


def _build(built: Path, report: Callable[[str], None]) -> None:
    if packages := missing(_BUILD_PACKAGES):
        names = " ".join(packages)
        raise ProcessError(
            f"Cannot build Kubernetes: not installed: {names}. Run: apt install --no-install-recommends {names}"
        )
    for outdated in CACHE.glob("programs-*"):
        shutil.rmtree(outdated)
    report("Building Kubernetes from the source package of Debian (13 CPU minutes, once) …")
    begun = time.monotonic()
    log = CACHE / "build.log"
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="building-") as scratch:
        folder = Path(scratch)
        _write_sources(folder / "apt-sources")
        with log.open("wb") as output:
            done = subprocess.run(  # noqa: S603  command of this tool
                [str(_BUILD), scratch, *BUILT],
                env={**system_environment(), "TMPDIR": scratch},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            )
        if done.returncode:
            raise ProcessError(f"Cannot build Kubernetes: see {log}.")
        (folder / "programs").rename(built)
        run(["chmod", "-R", "u+w", scratch], "make the files of the build removable")
    report(f"Built {built} in {time.monotonic() - begun:.0f} s.")


def _write_sources(folder: Path) -> None:
    """Write the apt sources of this machine as sources of source packages."""
    folder.mkdir()
    for path in apt_sources()[0]:
        text = path.read_text()
        changed = (
            _SOURCE_LINE.sub("deb-src", text) if path.suffix == ".list" else _SOURCE_TYPES.sub("Types: deb-src", text)
        )
        (folder / path.name).write_text(changed)
