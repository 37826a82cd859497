# SPDX-License-Identifier: GPL-3.0-or-later
"""Browser of the tests. It makes playwright importable, which is not in the environment of the other suites."""

from __future__ import annotations

import sys

import pytest

from tests import ROOT

PACKAGES = ROOT / ".cache/browser"

if not (PACKAGES / "playwright").is_dir():
    raise pytest.UsageError("Cannot test in a browser: playwright is not installed. Run: make .cache/browser/.ready")
sys.path.insert(0, str(PACKAGES))
