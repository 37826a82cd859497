# SPDX-License-Identifier: GPL-3.0-or-later
"""Page of the changelog: the releases, and the fragments of the next release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .pages import ROOT


def page() -> str:
    """Return the reStructuredText of the changelog with a section for changes without a release."""
    released = (ROOT / "CHANGELOG.rst").read_text().replace(".. contents:: Topics\n", "")
    return released + _unreleased(ROOT / "changelogs")


def _unreleased(folder: Path) -> str:
    config = yaml.safe_load((folder / "config.yaml").read_text())
    fragments = [yaml.safe_load(path.read_text()) for path in sorted((folder / "fragments").glob("*.yml"))]
    lines = ["", "Changes without a release", "=" * 25, ""]
    for key, title in config["sections"]:
        changes = [change for fragment in fragments for change in _listed(fragment.get(key))]
        if changes:
            lines += [title, "-" * len(title), "", *(f"- {change}" for change in changes), ""]
    return "\n".join(lines)


def _listed(changes: Any) -> list[str]:
    return [" ".join(change.split()) for change in changes or []]
