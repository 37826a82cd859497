# SPDX-License-Identifier: GPL-3.0-or-later
"""Images: those of the IPU operator, and small ones for tests. They are built once, and again when their inputs change.

Root file systems and Python packages are kept apart: a change of a source file only builds the images again.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from ..hosts.site import run, system_environment
from ..locks import folder_lock
from . import cache, roots
from .site import CACHE, CHECKOUT

PAUSE = "localhost/pause:1"  # keeps the namespaces of a pod
WORKER = "localhost/mpi-worker:1"  # substitute for the images of users: Open MPI and SSH
TARGETS = {"ipu-operator": "operator", "gc-proxy": "proxy", "gc-launcher": "launcher"}  # image -> target of the build
ALL = "gc-operator-images"  # archive with all images of the operator
_FOLDER = CHECKOUT / "images"
_REQUIREMENTS = _FOLDER / "requirements.txt"
_SOURCES = (
    "images",
    "plugins/module_utils",
    "pyproject.toml",
    "README.md",
    "src/openipu",
    "tools/kubernetes/images.py",
)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_GLIBC = "2_36"  # of Debian bookworm
# Training program of the published examples, and the folder where they expect it.
_TRAINING = Path(__file__).with_name("training") / "train.py"
_TRAINING_FOLDER = "/public_examples/applications/tensorflow/cnns/training"
_MEGABYTE = 1_000_000


def reference(name: str) -> str:
    """Return the name of an image of the operator, with the version of the project as tag."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    return f"localhost/openipu/{name}:{project['version']}"


def ensure_images(programs: Path, report: Callable[[str], None]) -> dict[str, Path]:
    """Return archives for podman, containerd and docker. Missing ones are built. Raises ProcessError.

    Keys: ``ALL`` for the images of the operator, "pause", "worker". ``programs``: folder with kubectl.
    """
    sleep = ['CMD ["/bin/busybox", "sleep", "infinity"]']
    train = [f"COPY {_TRAINING.name} {_TRAINING_FOLDER}/", f"WORKDIR {_TRAINING_FOLDER}", 'CMD ["sleep", "infinity"]']
    with folder_lock(CACHE):
        return {
            ALL: _operator_images(programs, report),
            "pause": _test_image(PAUSE, roots.PAUSE, sleep, [], report),
            "worker": _test_image(WORKER, roots.WORKER, train, [_TRAINING], report),
        }


def _operator_images(programs: Path, report: Callable[[str], None]) -> Path:
    revision, seconds = _revision()
    root = roots.ensure_root(roots.BASE, report)
    inputs: list[str | Path] = [root.name, programs.name, revision, seconds, *_source_files()]

    def create(archive: Path) -> None:
        begun = time.monotonic()
        packages = _ensure_packages(report)
        report("Building the images of the IPU operator …")
        context, podman = archive.parent / "context", _Podman(archive.parent)
        context.mkdir()
        _write_context(context, root, packages, programs)
        arguments = [f"--build-arg=VERSION={reference('x').rpartition(':')[2]}", f"--build-arg=REVISION={revision}"]
        arguments += ["--quiet", "--layers", f"--timestamp={seconds}", "--network=none"]
        for name, target in TARGETS.items():
            tags = [f"--target={target}", f"--tag={reference(name)}", f"--file={_FOLDER / 'Containerfile'}"]
            podman("build", *arguments, *tags, str(context))
        podman("save", "--quiet", "--multi-image-archive", f"--output={archive}", *map(reference, TARGETS))
        sizes = [f"{name} {_megabytes(podman.size(reference(name)))}" for name in TARGETS]
        total = f"{_megabytes(archive.stat().st_size)} together"
        report(f"Built the images in {time.monotonic() - begun:.0f} s: {', '.join(sizes)}, {total}.")

    return cache.ensure(f"image-{ALL}", inputs, create, ".tar")


def _revision() -> tuple[str, str]:
    """Return the last commit that changed the sources, and the creation time of the images in seconds since 1970."""
    git = ["git", "-C", str(CHECKOUT)]
    commit, seconds = run(
        [*git, "log", "--max-count=1", "--format=%H %ct", "--", *_SOURCES], "read the last commit of the sources"
    ).split()
    changed = run([*git, "status", "--porcelain", "--", *_SOURCES], "compare the sources with the commit")
    return commit + ("-dirty" if changed else ""), os.environ.get("SOURCE_DATE_EPOCH") or seconds


def _source_files() -> Iterator[Path]:
    for each in _SOURCES:
        path = CHECKOUT / each
        found = path.rglob("*") if path.is_dir() else [path]
        yield from sorted(file for file in found if file.is_file() and file.suffix != ".pyc")


def _ensure_packages(report: Callable[[str], None]) -> Path:
    """Return the folder of the Python packages that the programs need."""

    def create(folder: Path) -> None:
        report("Installing the Python packages of the IPU operator …")
        requirements = ["--require-hashes", f"--requirement={_REQUIREMENTS}"]
        _install(folder, requirements, "install the packages of the IPU operator")

    return cache.ensure("packages", [_GLIBC, platform.machine(), _REQUIREMENTS], create)


def _install(folder: Path, arguments: list[str], purpose: str) -> None:
    """Install Python packages into a folder, without the files of this machine."""
    uv = str(CHECKOUT / ".venv" / "bin" / "uv")
    target = ["--python-version=3.11", f"--python-platform={platform.machine()}-manylinux_{_GLIBC}"]
    command = [uv, "pip", "install", "--quiet", "--no-deps", "--no-config", *target, f"--target={folder}", *arguments]
    run(command, purpose, _client_environment())
    shutil.rmtree(folder / "bin", ignore_errors=True)
    (folder / ".lock").unlink(missing_ok=True)
    for record in folder.glob("*.dist-info/*"):
        if record.name in ("direct_url.json", "uv_cache.json", "RECORD"):
            record.unlink()  # they have paths and times of this machine


def _write_context(context: Path, root: Path, packages: Path, programs: Path) -> None:
    """Write the files that the Containerfile copies."""
    os.link(root, context / "root.tar")
    shutil.copytree(packages, context / "packages")
    wheels, program = context.with_name("wheels"), context / "program"
    uv = str(CHECKOUT / ".venv" / "bin" / "uv")
    build = [uv, "build", "--wheel", "--no-build-isolation", "--quiet", f"--out-dir={wheels}", str(CHECKOUT)]
    run(build, "build the wheel", {**_client_environment(), "VIRTUAL_ENV": str(CHECKOUT / ".venv")})
    _install(program, [str(each) for each in wheels.glob("*.whl")], "install openipu")
    (context / "packages.txt").write_text("\n".join(_package_list(root, packages, program)) + "\n")
    shutil.copy(programs / "kubectl", context / "kubectl")
    (context / "kubectl").chmod(0o755)


def _package_list(root: Path, *folders: Path) -> list[str]:
    """Return all packages of the images as package URLs: those of Debian, and those of Python in folders."""
    names = (each.name.removesuffix(".dist-info") for folder in folders for each in folder.glob("*.dist-info"))
    return sorted([*roots.unpacked_packages(root), *(f"pkg:pypi/{name.replace('-', '@', 1)}" for name in names)])


def _test_image(
    image: str, root: roots.Root, lines: list[str], files: list[Path], report: Callable[[str], None]
) -> Path:
    """Return the archive of an image that tests use. ``lines``: of its Containerfile, which may copy the files."""
    base = roots.ensure_root(root, report)
    containerfile = "\n".join(["FROM scratch", "ADD root.tar /", f"ENV PATH={_PATH}", *lines]) + "\n"

    def create(archive: Path) -> None:
        context, podman = archive.parent / "context", _Podman(archive.parent)
        context.mkdir()
        os.link(base, context / "root.tar")
        for each in files:
            shutil.copy(each, context)
        (context / "Containerfile").write_text(containerfile)
        podman("build", "--quiet", "--network=none", f"--tag={image}", str(context))
        podman("save", "--quiet", f"--output={archive}", image)
        report(f"Built the image '{image}': {_megabytes(podman.size(image))}.")

    return cache.ensure(f"image-{root.name}", [base.name, image, containerfile, *files], create, ".tar")


def _megabytes(size: int) -> str:
    return f"{size / _MEGABYTE:.0f} MB"


class _Podman:
    """Podman with a store of its own in a folder, which ends with the folder."""

    def __init__(self, folder: Path) -> None:
        scratch = Path(tempfile.mkdtemp(dir=folder, prefix="podman-"))
        self._options = [f"--root={scratch / 'store'}", "--runroot=/run/podman", "--tmpdir=/run/libpod"]
        self._options += ["--storage-driver=overlay", "--events-backend=none", "--cgroup-manager=cgroupfs"]
        self._environment = {**system_environment(), "TMPDIR": str(scratch)}

    def __call__(self, *arguments: str) -> str:
        """Run a command. Raises ProcessError."""
        # Podman has one folder for the locks of all stores. Private mounts prevent locks of this store in it.
        script = 'mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, "sh", "podman", *self._options, *arguments]
        return run(command, f"run podman {arguments[0]}", self._environment)

    def size(self, image: str) -> int:
        """Return the size of an image in bytes."""
        return int(self("image", "inspect", "--format={{.Size}}", image))


def _client_environment() -> dict[str, str]:
    """Return the environment of uv: the settings of the package index belong to the caller."""
    settings = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}
    return {**system_environment(), **settings}
