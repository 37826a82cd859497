#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ansible-test sanity on the unpacked archive of the collection, as users install it.

ansible-test requires a git work tree at …/ansible_collections/<namespace>/<name>. It prepares its virtual
environments with a script from a host that is not a package index. This program puts another script into
its cache, which installs pip from a wheel of the package index. All files are in .cache/sanity, which
replaces the home directory, so the home directory of the user does not change.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.resources import files
from pathlib import Path

from tools import archives

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".cache" / "sanity"
TREE = HOME / "ansible_collections" / "openipu" / "pod"
CACHE = HOME / ".ansible" / "test" / "cache"

BOOTSTRAP = """\
import glob, runpy, sys
wheels = {folder!r}
sys.path.insert(0, glob.glob(wheels + "/pip-*.whl")[0])
arguments = [a for a in sys.argv[1:] if a not in ("--no-setuptools", "--no-wheel")]
sys.argv = ["pip", "install", "--no-index", "--find-links", wheels, "pip=={pip}", *arguments]
runpy.run_module("pip", run_name="__main__")
"""


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Run a command; exit with its status when it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(done.returncode)


def pip_release() -> str:
    """Return the release of pip that ansible-test installs in its environments, read from its source."""
    source = Path(str(files("ansible_test"))) / "_internal" / "python_requirements.py"
    match = re.search(r"pip\s*=\s*'([0-9.]+)'", source.read_text())
    if not match:
        sys.exit(f"Cannot read the release of pip from {source}: its format has changed. Update tools/sanity.py.")
    return match[1]


def prepare() -> None:
    """Unpack the built collection as a git work tree and fill the cache of ansible-test."""
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.mkdir(parents=True)
    build = HOME / "build"
    shutil.rmtree(build, ignore_errors=True)
    run("ansible-galaxy", "collection", "build", "--force", "--output-path", build, ROOT)
    with tarfile.open(next(build.glob("*.tar.gz"))) as archive:
        archives.unpack(archive, TREE)
    for entry in (
        "init --quiet",
        "add --all",
        "-c user.name=sanity -c user.email=sanity@localhost commit --quiet -m sanity",
    ):
        run("git", *entry.split(), cwd=TREE)

    pip = pip_release()
    script = CACHE / f"get_pip_{pip.replace('.', '_')}.py"
    wheels = CACHE / "wheels"
    if not list(wheels.glob(f"pip-{pip}-*.whl")):
        run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels, f"pip=={pip}")
    script.write_text(BOOTSTRAP.format(folder=str(wheels), pip=pip))

    # ansible-test uses the package index that the user has configured.
    configuration = Path.home() / ".config" / "pip"
    if configuration.is_dir() and not (HOME / ".config" / "pip").exists():
        (HOME / ".config").mkdir(exist_ok=True)
        (HOME / ".config" / "pip").symlink_to(configuration)


def main() -> int:
    """Run all sanity tests, or only those of the arguments."""
    prepare()
    interpreter = Path(sys.executable).resolve().parent  # not a shim: those fail inside ansible-test
    path = os.pathsep.join([str(Path(sys.executable).parent), str(interpreter), "/usr/bin", "/bin"])
    env = {**os.environ, "HOME": str(HOME), "PATH": path, "LC_ALL": "C.UTF-8"}
    env.pop("ANSIBLE_CONFIG", None)
    tests = [argument for name in sys.argv[1:] for argument in ("--test", name)]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    run("ansible-test", "sanity", "--local", "--python", python, "--color", "no", *tests, cwd=TREE, env=env)
    return 0


if __name__ == "__main__":
    sys.exit(main())
