# SPDX-License-Identifier: GPL-3.0-or-later
"""Light and dark scheme of the documentation site: texts, diagrams and pictures are legible in both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import DESKTOP
from tests.site.conftest import SITE

# Each kind of page: lists, prose, code, diagrams, pictures, tables, options of plugins, generated references.
PAGES = (
    "index.html",
    "architecture.html",
    "overview.html",
    "tutorials/first-pod.html",
    "how-to/monitoring.html",
    "how-to/troubleshooting.html",
    "reference/awx-workflows.html",
    "reference/commands/twin.html",
    "reference/kubernetes-objects.html",
    "reference/rest-api.html",
    "explanation/partition-life.html",
    "plugins/vipu_partition_module.html",
    "plugins/monitoring_role.html",
    "genindex.html",
)
PICTURES = sorted(path.relative_to(SITE).as_posix() for path in (SITE / "_images").glob("*.svg"))
RECORDING = "_images/session.svg"  # a terminal, dark in both schemes; its texts move
BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(19, 20, 22)"}
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
COLOURS = """() => {
    const probe = document.body.appendChild(document.createElement("div"));
    probe.style.color = "var(--color-background-border)";
    const border = getComputedStyle(probe).color;
    probe.remove();
    const cells = [...document.querySelectorAll("table.ansible-option-table :is(td, .ansible-option-cell)")];
    const styles = cells.map(each => getComputedStyle(each)).filter(each => parseFloat(each.borderTopWidth));
    return {border, borders: [...new Set(styles.map(each => each.borderTopColor))],
            required: getComputedStyle(document.querySelector(".ansible-option-required")).color};
}"""


@pytest.fixture(scope="module", params=BACKGROUNDS)
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """Page of a reader who prefers a scheme."""
    opened = browser.new_page(viewport=DESKTOP, color_scheme=request.param)
    yield opened
    opened.close()


def scheme(page: Page) -> str:
    return "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"


@pytest.mark.parametrize("name", PAGES)
def test_texts_and_diagrams_have_sufficient_contrast(page: Page, name: str) -> None:
    page.goto(f"{SITE.as_uri()}/{name}")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == BACKGROUNDS[scheme(page)]
    result = page.evaluate(CONTRAST)
    assert result["found"] == []
    assert result["texts"] > 50


@pytest.mark.parametrize("name", [each for each in PICTURES if each != RECORDING])
def test_pictures_have_sufficient_contrast(page: Page, name: str) -> None:
    page.goto(f"{SITE.as_uri()}/{name}")
    result = page.evaluate(CONTRAST)
    assert result["found"] == []
    assert result["texts"] > 20


def test_tables_of_options_have_the_colours_of_the_theme(page: Page) -> None:
    page.goto(f"{SITE.as_uri()}/plugins/vipu_partition_module.html")
    colours = page.evaluate(COLOURS)
    assert colours["borders"] == [colours["border"]]
    assert colours["required"] == {"light": "rgb(198, 40, 40)", "dark": "rgb(255, 138, 128)"}[scheme(page)]


def test_low_contrast_is_found(page: Page) -> None:
    page.set_content("""<body style="background: #131416; color: #cfd0d0"><p>good</p><p style="color: #555">faint</p>
        <svg width="300" height="99"><rect width="99" height="99" fill="#fff"/>
        <text x="9" y="40" fill="#ddd">pale</text><text x="200" y="40" fill="#ddd">clear</text></svg></body>""")
    result = page.evaluate(CONTRAST)
    assert [each.split('"')[1] for each in result["found"]] == ["faint", "pale"]
    assert result["texts"] == 4
