# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment of ansible-rulebook in .cache/rulebook: Python 3.12 with locked packages and this collection.

``python -m tests.events.environment requirements/rulebook.txt`` installs it, unless it is up to date. Without
Python 3.12 or Java it prints the reason, and the tests that need it are skipped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests import ROOT
from tools.locks import folder_lock

HOME = ROOT / ".cache" / "rulebook"
BIN = HOME / "bin"
LOCKED = ROOT / "requirements" / "rulebook.txt"
_READY = HOME / ".ready"
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def missing() -> str:
    """Return why the rulebooks cannot run here, empty if they can."""
    if not (java := shutil.which("java", path=_java_path())):
        return "Java is missing. Run: apt install --no-install-recommends openjdk-17-jre-headless"
    if subprocess.run([java, "-version"], capture_output=True, check=False).returncode:
        return f"Java does not start: {java}"
    if not _READY.exists() or _READY.read_text() != _fingerprint():
        return f"ansible-rulebook is not installed in {HOME.relative_to(ROOT)}. Run make test-events with Python 3.12."
    return ""


def install() -> str:
    """Install the packages, unless they are up to date. Return why it was not possible, empty if it was."""
    with folder_lock(HOME.parent / "rulebook-lock"):
        if _READY.exists() and _READY.read_text() == _fingerprint():
            return ""
        python = next(_pythons(), None)
        if python is None:
            return "Python 3.12 is missing. Install it, or set PYTHON312 to its path."
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", python, HOME], check=True)
        sync = ["pip", "sync", "--quiet", "--python", BIN / "python", "--require-hashes", LOCKED]
        subprocess.run([uv, *sync], check=True)
        [site] = HOME.glob("lib/python*/site-packages")
        collections = site / "ansible_collections" / "openipu"
        collections.mkdir(parents=True)
        (collections / "pod").symlink_to(ROOT)
        _READY.write_text(_fingerprint())
    return ""


def _pythons() -> Iterator[str]:
    """Yield the interpreters that are Python 3.12. Those of pyenv are found without its settings."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = [os.environ.get("PYTHON312", ""), shutil.which("python3.12") or ""]
    for each in [*named, *map(str, sorted(pyenv.glob("versions/3.12*/bin/python3.12"), reverse=True))]:
        if each:
            shown = subprocess.run([each, "-c", _VERSION], capture_output=True, text=True, check=False)
            if shown.stdout.strip() == "3.12":
                yield each


def _java_path() -> str:
    home = os.environ.get("JAVA_HOME")
    return os.pathsep.join([*([f"{home}/bin"] if home else []), os.environ["PATH"]])


def _fingerprint() -> str:
    return hashlib.sha256(LOCKED.read_bytes()).hexdigest()


if __name__ == "__main__":
    if reason := install() or missing():
        print(f"The tests of the rulebooks are skipped: {reason}", file=sys.stderr)
