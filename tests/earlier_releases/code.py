# SPDX-License-Identifier: GPL-3.0-or-later
"""Code of the commit that wrote the state, from the history of this checkout."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests import ROOT
from tests.earlier_releases import content
from tools import archives


def export(folder: Path) -> Path:
    """Write the packages of the earlier code below a folder, and return the value of PYTHONPATH for its programs.

    The test is skipped in a shallow clone.
    """
    if _git("rev-parse", "--is-shallow-repository") != b"false\n":
        pytest.skip("this clone has no history: git fetch --unshallow")
    commit = _git("log", "-1", "--format=%H", "--", str(content.RECORDS)).decode().strip()
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit, "src", "plugins/module_utils"))) as archive:
        archives.unpack(archive, folder)
    return folder / "src"


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
