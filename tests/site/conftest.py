# SPDX-License-Identifier: GPL-3.0-or-later
"""Path of playwright, and the built documentation site."""

from __future__ import annotations

import pytest

from tests import ROOT
from tests.browser import conftest as browser  # it makes playwright importable

SITE = ROOT / "docs/build/html"

assert browser.PACKAGES
if not (SITE / "index.html").is_file():
    raise pytest.UsageError("Cannot test the documentation site: it is not built. Run: make test-site")
