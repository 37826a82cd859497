# SPDX-License-Identifier: GPL-3.0-or-later
"""Chromium, driven by playwright, and the sizes of its windows.

Files that are loaded before their tests import the names of playwright from here: this package makes it importable.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

__all__ = ("DESKTOP", "PHONE", "Browser", "chromium", "expect")
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium, and end it. A process can have only one at a time: playwright runs an event loop for it."""
    with sync_playwright() as playwright:
        # The sandbox needs privileges that containers lack. The browser opens only pages of the tests.
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()
