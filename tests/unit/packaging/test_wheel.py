# SPDX-License-Identifier: GPL-3.0-or-later
"""An installed wheel never imports modules of an installed collection."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import ROOT

PROGRAMS = (
    "openipu.vipu.cli.user",
    "openipu.vipu.cli.admin",
    "openipu.vipu.server.main",
    "openipu.vipu.agent.main",
    "openipu.twin.cli.main",
    "openipu.twin.rack.main",
    "openipu.pod_files.cli.main",
    "openipu.kubernetes.launcher.main",
    "openipu.kubernetes.operator.main",
    "openipu.kubernetes.proxy.main",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and unpack it, as an installation does."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    site = folder / "site"
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        archive.extractall(site)
    return site


def test_the_wheel_has_a_copy_of_the_shared_modules(wheel: Path) -> None:
    shared = ROOT / "plugins" / "module_utils"
    names = {str(path.relative_to(shared)) for path in shared.rglob("*.py")}
    packed = wheel / "openipu" / "shared"
    assert {str(path.relative_to(packed)) for path in packed.rglob("*.py")} == names
    assert not (wheel / "ansible_collections").exists()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_collection_of_another_release_is_not_imported(program: str, wheel: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "ansible_collections" / "openipu" / "pod" / "plugins" / "module_utils"
    for path in (wheel / "openipu" / "shared").rglob("*.py"):
        copy = foreign / path.relative_to(wheel / "openipu" / "shared")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("raise RuntimeError('a module of another release was imported')\n")
    script = (
        f"import {program}, sys, openipu.shared.vipu.client as client; print(client.__file__); "
        "assert not [name for name in sys.modules if name.startswith('ansible_collections.openipu')]"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(wheel)])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(wheel / "openipu" / "shared" / "vipu" / "client.py")
