# SPDX-License-Identifier: GPL-3.0-or-later
"""The built documentation site, and one browser for all of its tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import ROOT
from tests.browser.chromium import Browser, chromium

SITE = ROOT / "docs/build/html"

if not (SITE / "index.html").is_file():
    raise pytest.UsageError("Cannot test the documentation site: it is not built. Run: make test-site")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started
