# SPDX-License-Identifier: GPL-3.0-or-later
"""What hosts install is what the tests ran with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[3]


def pins(file: Path) -> dict[str, set[str]]:
    """By project, the releases that a lock pins."""
    found: dict[str, set[str]] = {}
    for name, release in re.findall(r"(?m)^([A-Za-z0-9._-]+)==([^ ;]+)", file.read_text()):
        found.setdefault(canonicalize_name(name), set()).add(release)
    return found


HOSTS = pins(ROOT / "roles/openipu/files/requirements.txt")


def test_hosts_get_the_releases_that_are_tested():
    tested = pins(ROOT / "requirements/dev.txt")
    assert HOSTS
    assert {name: releases - tested.get(name, set()) for name, releases in HOSTS.items()} == {
        name: set() for name in HOSTS
    }


def test_hosts_get_everything_that_the_package_depends_on():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in map(Requirement, wanted):
        releases = HOSTS[canonicalize_name(requirement.name)]
        assert all(release in requirement.specifier for release in releases), requirement
