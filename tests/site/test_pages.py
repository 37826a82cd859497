# SPDX-License-Identifier: GPL-3.0-or-later
"""Every page of the documentation site in a real browser, from files and without a network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import DESKTOP, PHONE
from tests.site.conftest import SITE

PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
# Elements that make the page wider than the window, for the message of a failure.
WIDE = """() => document.documentElement.scrollWidth <= window.innerWidth ? [] :
    [...document.querySelectorAll("body *")].filter(each => each.getBoundingClientRect().right > window.innerWidth)
        .slice(0, 5).map(each => each.tagName + "." + each.className + ": " + each.textContent.trim().slice(0, 80))
        .concat("width: " + document.documentElement.scrollWidth)"""


class Reader:
    """A page of the browser with its console messages and requests."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.messages: list[str] = []
        self.outside: list[str] = []
        page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self._request(request.url))

    def _request(self, url: str) -> None:
        if not url.startswith((f"{SITE.as_uri()}/", "data:")):
            self.outside.append(url)

    def open(self, name: str) -> None:
        """Open a page of the site, without the messages of the one before."""
        self.messages.clear()
        self.outside.clear()
        self.page.goto(f"{SITE.as_uri()}/{name}")


@pytest.fixture(scope="module")
def reader(browser: Browser) -> Iterator[Reader]:
    page = browser.new_page(viewport=DESKTOP)
    yield Reader(page)
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_needs_no_network(reader: Reader, name: str) -> None:
    reader.page.set_viewport_size(DESKTOP)
    reader.open(name)
    assert reader.page.title()
    for size in (DESKTOP, PHONE):
        reader.page.set_viewport_size(size)
        assert reader.page.evaluate(WIDE) == []
    assert reader.messages == []
    assert reader.outside == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize(
    ("text", "page"),
    [("rehearsal", "how-to/rehearsal.html"), ("vipu_partition", "plugins/vipu_partition_module.html")],
)
def test_the_search_box_finds_a_page(reader: Reader, size: dict[str, int], text: str, page: str) -> None:
    reader.page.set_viewport_size(size)
    reader.open("how-to/power.html")
    if size == PHONE:
        reader.page.locator("label.nav-overlay-icon").first.click()
    box = reader.page.locator("input[name='q']").first
    box.fill(text)
    box.press("Enter")
    link = reader.page.locator(f"#search-results a[href^='{page}']").first
    link.wait_for(timeout=20_000)
    reader.page.locator(".search-summary", has_text="found").wait_for(timeout=20_000)
    assert reader.messages == []
    assert reader.outside == []
    link.click()
    assert reader.page.url.startswith(f"{SITE.as_uri()}/{page}")
