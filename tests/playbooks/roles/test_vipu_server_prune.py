# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal of old copies by the role `vipu_server`: foreign files remain."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests import ROOT

ROLE = ROOT / "roles" / "vipu_server"


def prune(folder: Path, rules: Sequence[tuple[str, str]], keep: int) -> None:
    """Remove old copies by rules: pattern and order."""
    book = folder.parent / "play.yml"
    include = {"ansible.builtin.include_tasks": str(ROLE / "tasks/prune.yml")}
    chosen = [{"pattern": pattern, "keep": keep, "order": order} for pattern, order in rules]
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars_files": [str(ROLE / "defaults/main.yml"), str(ROLE / "vars/main.yml")],
        "tasks": [
            {**include, "vars": {f"vipu_server_prune_{name}": value for name, value in each.items()}} for each in chosen
        ],
    }
    book.write_text(yaml.safe_dump([play]))
    given = {"vipu_server_backup_folder": str(folder), "ansible_python_interpreter": sys.executable}
    program = Path(sys.executable).with_name("ansible-playbook")
    command = [program, "-i", "localhost,", "-c", "local", "-e", json.dumps(given), book]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr


# Pattern, order, copies in the order of their creation, and foreign files.
KINDS = (
    (
        "{{ vipu_server_bundle_backups }}",
        "path",
        [f"vipu-2026112{day}T031700Z.tar.gz" for day in (3, 1, 2)],
        ["vipu-1.18.0.tar.gz", "vipu-20261121T031700.000000Z.tar.gz", "vipu-20261121T031700Z.tar.gz.part"],
    ),
    (
        "{{ vipu_server_upgrade_backups }}",
        "ctime",
        ["before-0.1.0-0123456789ab.tar.gz", "before-vipu-1.18.0-aabbccddeeff.tar.gz"],
        ["before-migration.tar.gz", "before-0123456789ab.tar.gz.old"],
    ),
    (
        "{{ vipu_server_backup_folder }}/vipu[.]failed([.]~[0-9]+~)?",
        "ctime",
        ["vipu.failed.~1~", "vipu.failed"],
        ["vipu"],
    ),
)


def test_old_copies_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    latest = 0.0
    kept = set()
    for _pattern, order, copies, foreign in KINDS:
        for name in [*foreign, *copies]:
            path = folder / name
            path.touch() if ".tar." in name else path.mkdir()
            while path.stat().st_ctime <= latest:  # until the clock of the file system has advanced
                path.chmod(0o700)
            latest = path.stat().st_ctime
        kept |= {max(copies) if order == "path" else copies[-1], *foreign}
    prune(folder, [(pattern, order) for pattern, order, *_names in KINDS], 1)
    assert {path.name for path in folder.iterdir()} == kept
