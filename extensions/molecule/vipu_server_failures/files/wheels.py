# SPDX-License-Identifier: GPL-3.0-or-later
"""Build two releases that are newer than the checkout: a working 0.1.1 and a broken 0.1.2.

Before the broken release fails, it upgrades the database to a version that no other release can read, and
deletes partitions.

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
    from openipu.vipu.storage.interface import StoreError
    with sqlite3.connect(settings.database) as database:
        database.execute("DELETE FROM partitions")
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    raise StoreError("This release is broken on purpose.")
"""


def build(checkout: Path, release: str, harm: str, folder: Path) -> None:
    """Build a wheel of the checkout with that release number, and with ``harm`` as the first code of its server."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "openipu"
        # The link src/openipu/shared becomes a folder of files.
        shutil.copytree(checkout / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("pyproject.toml", "README.md"):
            shutil.copy(checkout / part, tree)
        replace(tree / "pyproject.toml", r'(?m)^version = ".*"', f'version = "{release}"')
        replace(tree / "src/openipu/vipu/server/main.py", r"(?m)^def _serve\(.*\n", lambda match: match[0] + harm)
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(command, cwd=tree, check=True)


def replace(file: Path, pattern: str, by: object) -> None:
    """Replace the only match of ``pattern`` in a file."""
    text, count = re.subn(pattern, by, file.read_text())  # type: ignore[call-overload]
    if count != 1:
        sys.exit(f"Cannot edit '{file}': {count} matches of {pattern} instead of one. Correct this script.")
    file.write_text(text)


if __name__ == "__main__":
    target = Path(sys.argv[2]).absolute()
    build(Path(sys.argv[1]), "0.1.1", "", target)
    build(Path(sys.argv[1]), "0.1.2", HARM, target)
