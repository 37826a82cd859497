# SPDX-License-Identifier: GPL-3.0-or-later
"""Images: those of the IPU operator, and small ones for tests. They are built once, and again when their inputs change.

The root file systems are made of Debian packages on this machine, because no registry of images is needed then.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from ..hosts.image import apt_sources, write_root
from ..hosts.site import run, system_environment
from ..locks import folder_lock
from .site import CACHE, CHECKOUT

PAUSE = "localhost/pause:1"  # keeps the namespaces of a pod
WORKER = "localhost/mpi-worker:1"  # substitute for the images of users: Open MPI and SSH
TARGETS = {"ipu-operator": "operator", "gc-proxy": "proxy", "gc-launcher": "launcher"}  # image -> target of the build
ALL = "gc-operator-images"  # archive with all images of the operator
_FOLDER = CHECKOUT / "images"
_BASE_PACKAGES = ("ca-certificates", "libstdc++6", "python3")
_WORKER_PACKAGES = ("curl", "iproute2", "openmpi-bin", "openssh-client", "openssh-server", "procps", "python3")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT = 3  # builds in the cache
_GLIBC = "2_36"  # of Debian bookworm
_EPOCH = "1700000000"  # modification time in images, so that equal inputs give equal images
# Training program of the published examples, and the place where they expect it.
_TRAINING = Path(__file__).with_name("training") / "train.py"
_TRAINING_PATH = "/public_examples/applications/tensorflow/cnns/training/train.py"
# The programs run as another user than root, and need none of these.
_CLEAN_HOOK = 'rm -rf "$1"/var/cache/* "$1"/var/log/* "$1"/var/lib/apt/lists/*'


def reference(name: str) -> str:
    """Return the name of an image of the operator, with the version of the project as tag."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    return f"localhost/openipu/{name}:{project['version']}"


def ensure_images(programs: Path, report: Callable[[str], None]) -> dict[str, Path]:
    """Return image -> archive for podman, containerd and docker. Missing ones are built. Raises ProcessError.

    ``programs``: folder with kubectl.
    """
    with folder_lock(CACHE):
        folder = CACHE / f"images-{_fingerprint(programs)}"
        if not folder.exists():
            _remove_old()
            _build(folder, programs, report)
    return {name: folder / f"{name}.tar" for name in (*TARGETS, "pause", "worker", ALL)}


def _remove_old() -> None:
    """Remove all but the newest images: other checkouts with the same cache may use theirs."""
    built = [each for each in CACHE.glob("images-*") if each.is_dir()]
    for outdated in sorted(built, key=lambda each: each.stat().st_mtime)[: 1 - _KEPT]:
        shutil.rmtree(outdated)


def _fingerprint(programs: Path) -> str:
    digest = hashlib.sha256(repr((programs.name, _BASE_PACKAGES, _WORKER_PACKAGES, _CLEAN_HOOK)).encode())
    for path in (Path(__file__), _TRAINING, CHECKOUT / "pyproject.toml", *sorted(_FOLDER.iterdir()), *_sources()):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _sources() -> Iterator[Path]:
    """Yield the Python files of the wheel."""
    for folder in (CHECKOUT / "src" / "openipu", CHECKOUT / "plugins" / "module_utils"):
        yield from sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


def _build(folder: Path, programs: Path, report: Callable[[str], None]) -> None:
    report("Building the images of the IPU operator (2 minutes, once) …")
    begun = time.monotonic()
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="building-") as scratch:
        context, archives = Path(scratch) / "context", Path(scratch) / "archives"
        for each in (context, archives):
            each.mkdir()
        podman = _Podman(Path(scratch))
        _write_context(context, programs)
        version = reference("x").rpartition(":")[2]
        revision = run(["git", "-C", str(CHECKOUT), "rev-parse", "HEAD"], "read the commit").strip()
        for name, target in TARGETS.items():
            arguments = [f"--build-arg=VERSION={version}", f"--build-arg=REVISION={revision}", f"--target={target}"]
            arguments += [f"--tag={reference(name)}", f"--file={_FOLDER / 'Containerfile'}", str(context)]
            podman("build", "--quiet", "--layers", f"--timestamp={_EPOCH}", "--network=none", *arguments)
            podman("save", "--quiet", f"--output={archives / name}.tar", reference(name))
        podman("save", "--quiet", "--multi-image-archive", f"--output={archives / ALL}.tar", *map(reference, TARGETS))
        _add_test_images(podman, context, archives)
        archives.rename(folder)
    report(f"Built {folder} in {time.monotonic() - begun:.0f} s.")


def _write_context(context: Path, programs: Path) -> None:
    """Write the files that the Containerfile copies."""
    sources, options = apt_sources()
    write_root(context / "root.tar", "essential", _BASE_PACKAGES, sources, options, _CLEAN_HOOK)
    packages = context / "site-packages"
    uv, target = str(CHECKOUT / ".venv" / "bin" / "uv"), f"--target={packages}"
    python = ["--python-version=3.11", f"--python-platform={platform.machine()}-manylinux_{_GLIBC}", target]
    environment = _client_environment()
    install = [uv, "pip", "install", "--quiet", *python, "--no-deps"]
    requirements = ["--require-hashes", f"--requirement={_FOLDER / 'requirements.txt'}"]
    run([*install, *requirements], "install the packages of the IPU operator", environment)
    wheels = context.with_name("wheels")
    build = [uv, "build", "--wheel", "--no-build-isolation", "--quiet", f"--out-dir={wheels}", str(CHECKOUT)]
    run(build, "build the wheel", {**environment, "VIRTUAL_ENV": str(CHECKOUT / ".venv")})
    run([*install, *map(str, wheels.glob("*.whl"))], "install openipu", environment)
    shutil.rmtree(packages / "bin", ignore_errors=True)
    (context / "packages.txt").write_text("\n".join(_package_list(context, packages)) + "\n")
    shutil.copy(programs / "kubectl", context / "kubectl")
    (context / "kubectl").chmod(0o755)


def _package_list(context: Path, packages: Path) -> list[str]:
    """Return all packages of the images: those of Debian and those of Python, each with its version."""
    status = run(["tar", "-xOf", str(context / "root.tar"), "./var/lib/dpkg/status"], "read the list of packages")
    debian = [dict(line.split(": ", 1) for line in each.splitlines() if ": " in line) for each in status.split("\n\n")]
    found = [f"pkg:deb/debian/{each['Package']}@{each['Version']}" for each in debian if "Version" in each]
    names = (each.name.removesuffix(".dist-info") for each in packages.glob("*.dist-info"))
    return sorted([*found, *(f"pkg:pypi/{name.replace('-', '@', 1)}" for name in names)])


def _add_test_images(podman: _Podman, context: Path, archives: Path) -> None:
    """Build the image of paused pods from the base of the operator, and a worker with Open MPI."""
    sources, options = apt_sources()
    root = context.with_name("worker") / "root.tar"
    root.parent.mkdir()
    hook = f'install -D {_TRAINING} "$1{_TRAINING_PATH}" && {_CLEAN_HOOK}'
    write_root(root, "minbase", _WORKER_PACKAGES, sources, options, hook)
    for name, image, archive in (("pause", PAUSE, context / "root.tar"), ("worker", WORKER, root)):
        changes = ['--change=CMD ["sleep","infinity"]', f"--change=ENV PATH={_PATH}"]
        podman("import", "--quiet", *changes, str(archive), image)
        podman("save", "--quiet", f"--output={archives / name}.tar", image)


class _Podman:
    """Podman with a store of its own in a folder, which ends with the folder."""

    def __init__(self, folder: Path) -> None:
        self._options = [f"--root={folder / 'store'}", f"--runroot={folder / 'run'}", f"--tmpdir={folder / 'tmp'}"]
        self._options += ["--storage-driver=overlay", "--events-backend=none", "--cgroup-manager=cgroupfs"]
        self._environment = {**system_environment(), "TMPDIR": str(folder)}

    def __call__(self, *arguments: str) -> str:
        """Run a command. Raises ProcessError."""
        # Podman has one folder for the locks of all stores. Private mounts prevent locks of this store in it.
        script = 'mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, "sh", "podman", *self._options, *arguments]
        return run(command, f"run podman {arguments[0]}", self._environment)


def _client_environment() -> dict[str, str]:
    """Return the environment of uv: the settings of the package index belong to the caller."""
    settings = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}
    return {**system_environment(), **settings}
