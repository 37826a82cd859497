# SPDX-License-Identifier: GPL-3.0-or-later
"""Rack report in a real browser. Screenshots are in build/screenshots."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.report.page import render
from playwright.sync_api import Browser, Page

from openipu.shared.pod.load import load
from openipu.twin.launch.generate import PodSize
from tests import ROOT
from tests.browser.chromium import DESKTOP, PHONE, chromium
from tests.unit.collection.report.report_support import (
    domains,
    failing,
    five_faults,
    four_domains,
    info,
    passing,
    readings,
)

SCREENSHOTS = ROOT / "build/screenshots"
HOSTILE = "<script>document.title='changed'</script>\"'><img src=x onerror=\"document.title='changed'\">"


# Names the texts of the drawings through whose letters a line passes, with the class of the line.
CROSSED = """() => [...document.querySelectorAll('details.rack svg')].flatMap(drawing => {
    const texts = [...drawing.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
    const found = new Set();
    for (const line of drawing.querySelectorAll('path')) {
        const style = getComputedStyle(line), place = line.getScreenCTM();
        const invisible = ['none', 'rgba(0, 0, 0, 0)'].includes(style.stroke) || style.strokeOpacity === '0';
        if (!place || invisible) continue;
        for (let along = 0; along <= line.getTotalLength(); along += 1) {
            const {x, y} = line.getPointAtLength(along).matrixTransform(place);
            for (const [text, box] of texts)
                if (x > box.left + 1 && x < box.right - 1 && y > box.top + 2 && y < box.bottom - 2)
                    found.add(`${text}: ${line.getAttribute('class')}`);
        }
    }
    return [...found];
})"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (
        passing(),
        failing(),
        domains(),
        five_faults(),
        four_domains(swapped=True),
    )  # run first: they need an event loop, and the browser starts its own
    with chromium() as started:
        yield started


class OpenedReport:
    """Page with its console messages and requests."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page = page
        self.messages: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(file.as_uri())

    def screenshot(self, name: str) -> None:
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


@pytest.fixture
def open_report(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    pages: list[Page] = []
    pod = load(str(ROOT / "inventory/twin/pod.yml"))

    def open_page(
        run: dict[str, Any], data: dict[str, Any] | None = None, racks: Any = pod, pdus: Any = None, **options: Any
    ) -> OpenedReport:
        file = tmp_path / f"report{len(pages)}.html"
        file.write_text(render(racks, data or info(), run, pdus))
        pages.append(browser.new_page(**{"viewport": DESKTOP, **options}))
        return OpenedReport(pages[-1], file)

    yield open_page
    for page in pages:
        page.close()


RUNS = {"pass": passing, "fail": failing, "five-faults": five_faults}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", RUNS)
def test_reports_load_without_messages_and_network_requests(open_report: Any, name: str, scheme: str) -> None:
    opened = open_report(RUNS[name](), color_scheme=scheme)
    opened.screenshot(f"{name}-{scheme}")
    assert opened.messages == []
    assert [url for url in opened.requests if not url.startswith("file:")] == []
    assert len(opened.requests) == 1
    background = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is (scheme == "light")


@pytest.fixture
def four_racks(tmp_path: Path) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """POD of four racks with four machines each: POD, information of the controller, and a run with swapped cables."""
    pod = load(str(PodSize(racks=4, machines=4, ilds=4, topology="mesh", first_octet=10).write(tmp_path)))
    agents = [machine.agent for rack in pod.racks for machine in rack.machines]
    results = re.sub(r"\bag(\d\d)\b", lambda match: agents[int(match[1]) - 1], json.dumps(four_domains(swapped=True)))
    run = {**json.loads(results), "cluster": pod.desired()["clusters"][0]["id"]}
    partitions = [
        {"id": f"p{number:02}", "cluster": run["cluster"], "allocation": "all", "size": 4, "state": "ACTIVE"}
        | {"ipus": [{"ild": number // 4, "topology_id": 4 * (number % 4) + ipu} for ipu in range(4)]}
        for number in range(12)
    ]
    allocations = [{"id": "all", "cluster": run["cluster"], "agents": agents[:14]}]
    return pod, {**pod.desired(), "allocations": allocations, "partitions": partitions}, run


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_cable_between_racks_is_shown_in_each(open_report: Any, four_racks: Any, scheme: str) -> None:
    pod, data, run = four_racks
    opened = open_report(run, data, pod, color_scheme=scheme)
    opened.screenshot(f"four-racks-{scheme}")
    page = opened.page
    assert [page.locator("details.rack").nth(number).get_attribute("open") for number in range(4)] == ["", "", "", None]
    cable = page.locator("details.rack").nth(2).locator(".cable.failed[tabindex='0']").first
    cable.focus()
    assert "ag.01.02:gw1 <--> ag.02.02:gw2" in str(page.locator("#tip").text_content())
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('details.rack') === document.querySelector('details.rack')")
    assert opened.messages == []


def test_a_failed_cable_is_marked_and_named(open_report: Any) -> None:
    page = open_report(failing()).page
    failed = page.locator(".cable.failed[aria-label]")
    assert failed.count() == 1
    assert "ag03:7 <--> ag04:3" in str(failed.get_attribute("aria-label"))
    assert failed.locator("use").count() == 1, "a sign in addition to the colour"
    dashes = page.evaluate(
        "s => getComputedStyle(document.querySelector(s)).strokeDasharray", ".cable.failed[id] .seen"
    )
    assert dashes != "none"
    failed.locator(".hit").hover(force=True)
    assert "ag03:7 <--> ag04:3" in str(page.locator("#tip").text_content())
    page.locator("h1").hover()
    assert page.locator("#tip").text_content() == ""


def test_a_failed_cable_is_reachable_by_keyboard(open_report: Any) -> None:
    page = open_report(failing()).page
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.cable.failed')"):
            break
    assert "ag03:7 <--> ag04:3" in str(page.locator("#tip").text_content())
    assert page.locator(".cable.failed[aria-label]").evaluate(
        "each => getComputedStyle(each.querySelector('.seen')).stroke"
    )


def test_arrow_keys_move_between_cables(open_report: Any) -> None:
    page = open_report(passing()).page
    for _ in range(50):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.cable')"):
            break
    tip = page.locator("#tip")
    assert "ag01:5 <--> ag02:1: passed Cabling and IPU-Link and Traffic." in str(tip.text_content())
    page.keyboard.press("ArrowDown")
    assert "ag01:6 <--> ag02:2" in str(tip.text_content())
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert "Sync-Link cable ag15:sync7 <--> ag16:sync3" in str(tip.text_content()), "the last cable"
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.matches('.cable')"), "one tab stop for all passed cables"


def test_the_far_end_of_a_cable_shows_the_cable(open_report: Any) -> None:
    page = open_report(domains()).page
    page.locator("a.cable.failed .hit").hover(force=True)
    assert "GW-Link cable ag02:gw1 <--> ag04:gw2" in str(page.locator("#tip").text_content())


def test_foreign_scripts_are_blocked(open_report: Any) -> None:
    opened = open_report(passing())
    opened.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "document.title = 'changed'";
          document.body.append(script);
        }"""
    )
    assert opened.page.title() == "twin – rack report"
    assert "Content Security Policy" in opened.messages[0]


def test_a_remedy_links_to_its_cable(open_report: Any) -> None:
    page = open_report(failing()).page
    page.locator("details.rack").first.locator("summary").click()  # closed
    page.get_by_role("link", name="show").first.click()
    assert page.locator("details.rack").first.evaluate("each => each.open")
    assert page.evaluate("document.activeElement.matches('.cable.failed')")
    assert "ag03:7" in str(page.locator("#tip").text_content())


def test_reports_fit_on_a_phone(open_report: Any) -> None:
    for name, run in (("fail", failing()), ("five-faults", five_faults())):
        opened = open_report(run, pdus=readings(), viewport=PHONE, device_scale_factor=2)
        opened.screenshot(f"{name}-phone")
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", RUNS)
def test_no_cable_crosses_a_text(open_report: Any, name: str, viewport: dict[str, int]) -> None:
    page = open_report(RUNS[name](), viewport=viewport).page
    assert page.evaluate(CROSSED) == []
    page.locator("details.rack svg").first.evaluate("""drawing => {
        const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
        line.setAttribute('d', `M0 0L${drawing.viewBox.baseVal.width} ${drawing.viewBox.baseVal.height}`);
        line.setAttribute('class', 'added');
        line.setAttribute('style', 'stroke: red');
        drawing.append(line);
    }""")
    assert [found for found in page.evaluate(CROSSED) if found.endswith(": added")], "a crossing is found"


def test_no_cable_between_racks_crosses_a_text(open_report: Any, four_racks: Any) -> None:
    pod, data, run = four_racks
    assert open_report(run, data, pod).page.evaluate(CROSSED) == []


def test_all_racks_are_open_in_print(open_report: Any) -> None:
    page = open_report(passing()).page
    page.locator("details.rack").first.locator("summary").click()
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.getElementById('tip')).display") == "none"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.rack").first.evaluate("each => each.open")
    (SCREENSHOTS / "pass.pdf").write_bytes(pdf)
    (SCREENSHOTS / "five-faults.pdf").write_bytes(open_report(five_faults()).page.pdf(format="A4"))


def test_markup_in_names_is_escaped(open_report: Any) -> None:
    data, run = info(), failing()
    data["partitions"][0]["id"] = data["agents"][0]["host"] = data["allocations"][0]["id"] = HOSTILE
    pdus = {
        HOSTILE: {"device": None, "alarms": [], "msg": HOSTILE},
        "pdu1": {"device": None, "alarms": [], "msg": HOSTILE},
    }
    run["results"][1]["summary"] = [HOSTILE]
    run["results"][1]["failures"][0]["reason"] = HOSTILE
    opened = open_report(run, data, pdus=pdus)
    page = opened.page
    assert page.title().startswith("twin")
    assert page.locator("img").count() == 0
    page.locator(".cable.failed[aria-label] .hit").hover(force=True)
    assert HOSTILE in str(page.locator("#tip").text_content())
    assert (page.title(), opened.messages) == ("twin – rack report", [])


def test_text_has_sufficient_contrast(open_report: Any) -> None:
    """Check a contrast of at least 4.5 (WCAG 2.2 AA) for all text outside of the drawing, light and dark."""
    for scheme in ("light", "dark"):
        page = open_report(failing(), pdus=readings(), color_scheme=scheme).page
        assert page.evaluate(_CONTRAST) == [], scheme


def _rgb(colour: str) -> str:
    digits = colour.strip().lstrip("#")
    return f"rgb({', '.join(str(int(digits[index : index + 2], 16)) for index in (0, 2, 4))})"


_CONTRAST = """() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest("svg, script, style") || element.id === "tip") continue;
    const [first, second] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
    if (ratio < 4.5) found.push(`${element.className || element.tagName}: ${ratio.toFixed(2)}`);
  }
  return [...new Set(found)];
}"""
