# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks of the tests of peers that are programs of packages."""

from __future__ import annotations

import shutil

import pytest


def needs(*programs: str, packages: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a module. Its tests are skipped where a program is missing; ``packages`` have them."""
    missing = [program for program in programs if shutil.which(program) is None]
    reason = f"{', '.join(missing)} not installed: apt-get install {packages}"
    return [pytest.mark.peers, pytest.mark.skipif(bool(missing), reason=reason)]
