# SPDX-License-Identifier: GPL-3.0-or-later
"""Two releases that are newer than the checkout: 0.1.1, which serves, and 0.1.2, which does not.

The second one does the worst that a release can: before it fails, it brings the database to a version
that no other knows, and loses partitions.

    wheels.py CHECKOUT FOLDER
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HARM = """\
    import sqlite3
    with sqlite3.connect(settings.database) as spoiled:
        spoiled.execute("DELETE FROM partitions")
        spoiled.execute("UPDATE alembic_version SET version_num = '9999'")
    raise StoreError("This release is broken on purpose.")
"""


def build(checkout: Path, release: str, harm: str, folder: Path) -> None:
    """Build a wheel of the checkout as that release, in which serving begins with ``harm``."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "openipu"
        for part in ("src", "tools", "plugins/module_utils"):
            shutil.copytree(checkout / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("pyproject.toml", "README.md"):
            shutil.copy(checkout / part, tree)
        replace(tree / "pyproject.toml", r'(?m)^version = ".*"', f'version = "{release}"')
        replace(tree / "src/openipu/vipu/server.py", r"(?m)^def _serve\(.*\n", lambda match: match[0] + harm)
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(command, cwd=tree, check=True)


def replace(file: Path, pattern: str, by: object) -> None:
    """Replace what must be there once."""
    text, count = re.subn(pattern, by, file.read_text())  # type: ignore[call-overload]
    if count != 1:
        sys.exit(f"{file} has {count} places like {pattern} instead of one: look there, and mend this script.")
    file.write_text(text)


if __name__ == "__main__":
    wanted = Path(sys.argv[2]).absolute()
    build(Path(sys.argv[1]), "0.1.1", "", wanted)
    build(Path(sys.argv[1]), "0.1.2", HARM, wanted)
