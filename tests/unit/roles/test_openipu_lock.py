# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the lock file of the role openipu: hosts install the tested releases."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import ROOT


def pins(file: Path) -> dict[str, set[str]]:
    """Return the pinned releases by project."""
    found: dict[str, set[str]] = {}
    for name, release in re.findall(r"(?m)^([A-Za-z0-9._-]+)==([^ ;]+)", file.read_text()):
        found.setdefault(canonicalize_name(name), set()).add(release)
    return found


HOSTS = pins(ROOT / "roles/openipu/files/requirements.txt")


def test_pinned_releases_are_tested():
    tested = pins(ROOT / "requirements/dev.txt")
    assert HOSTS
    assert {name: releases - tested.get(name, set()) for name, releases in HOSTS.items()} == {
        name: set() for name in HOSTS
    }


def test_all_dependencies_are_pinned():
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in map(Requirement, dependencies):
        releases = HOSTS[canonicalize_name(requirement.name)]
        assert all(release in requirement.specifier for release in releases), requirement
