# SPDX-License-Identifier: GPL-3.0-or-later
"""Reference of modules, plugins and roles, made by antsibull-docs."""

from __future__ import annotations

import filecmp
import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from .pages import ROOT, tracked
from .steps import Step, run

_INPUTS = (
    "plugins/",
    "roles/",
    "meta/",
    "galaxy.yml",
    "requirements/dev.txt",
    "CHANGELOG.rst",
    "changelogs/config.yaml",
    "tools/documentation/plugins.py",
)
_CONTENTS = re.compile(r"^\.\. contents::\n(?: {3}:.*\n)+\n", re.MULTILINE)


def fingerprint() -> str:
    """Return a hash of everything that the documentation of the collection depends on."""
    digest = hashlib.sha256()
    for name in sorted(tracked()):
        if name.startswith(_INPUTS):
            digest.update(name.encode() + b"\0" + (ROOT / name).read_bytes() + b"\0")
    return digest.hexdigest()


def build(folder: Path, work: Path) -> None:
    """Check the documentation of the collection and write its pages, unless they are current.

    Args:
        folder: folder of the pages; unchanged pages keep their time.
        work: folder for logs, fresh pages and the mark of the last build.
    """
    mark, current = work / "plugins.sha256", fingerprint()
    if mark.is_file() and mark.read_text() == current and folder.is_dir():
        return
    mark.unlink(missing_ok=True)
    fresh = work / "plugins"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    check = ("lint-collection-docs", "--plugin-docs", "--skip-rstcheck", "--validate-collection-refs=self", ".")
    generate = ("--use-current", "--squash-hierarchy", "--fail-on-error", "--dest-dir", str(fresh), "openipu.pod")
    run(
        Step("Checking the documentation of the collection", ("antsibull-docs", *check)),
        Step("Writing the reference of the collection", ("antsibull-docs", "collection", *generate)),
        logs=work,
    )
    for page in fresh.rglob("*.rst"):
        page.write_text(adapt(page.read_text()))
    _replace(fresh, folder)
    mark.write_text(current)


def adapt(page: str) -> str:
    """Return a page of antsibull-docs for the theme Furo.

    Furo shows the contents of a page beside it, and an error in place of a second list. The name of a collection has
    no capitals.
    """
    return _CONTENTS.sub("", page).replace("Openipu.Pod\n", "openipu.pod\n")


def _replace(fresh: Path, folder: Path) -> None:
    """Copy changed files and remove those that no longer exist."""
    names = set(_files(fresh))
    for name in names:
        target = folder / name
        if not target.is_file() or not filecmp.cmp(fresh / name, target, shallow=False):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(fresh / name, target)
    for name in set(_files(folder)) - names:
        (folder / name).unlink()


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.relative_to(folder).as_posix()
