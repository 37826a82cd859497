# SPDX-License-Identifier: GPL-3.0-or-later
"""The rack report in a real browser. Its pictures are kept in build/screenshots, to be looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.plugin_utils.rack_report import render
from playwright.sync_api import Browser, Page, sync_playwright
from report_support import domains, failing, five_faults, four_domains, info, passing

from openipu.twin.generate import Shape

ROOT = Path(__file__).parents[2]
CHROMIUM = "/usr/bin/chromium"
PICTURES = ROOT / "build/screenshots"
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
HOSTILE = "<script>document.title='gone'</script>\"'><img src=x onerror=\"document.title='gone'\">"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    PICTURES.mkdir(parents=True, exist_ok=True)
    (
        passing(),
        failing(),
        domains(),
        five_faults(),
        four_domains(swapped=True),
    )  # made now, because they need an event loop, and the browser has one running
    with sync_playwright() as playwright:
        # Its own sandbox needs privileges that containers do not have; nothing but our file is opened.
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Opened:
    """A page, with what the browser complained of and asked for."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(file.as_uri())

    def picture(self, name: str) -> None:
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    pages: list[Page] = []
    pod = load(str(ROOT / "inventory/twin/pod.yml"))

    def make(run: dict[str, Any], told: dict[str, Any] | None = None, racks: Any = pod, **options: Any) -> Opened:
        file = tmp_path / f"report{len(pages)}.html"
        file.write_text(render(racks, told or info(), run))
        pages.append(browser.new_page(**{"viewport": DESK, **options}))
        return Opened(pages[-1], file)

    yield make
    for page in pages:
        page.close()


RUNS = {"pass": passing, "fail": failing, "five-faults": five_faults}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("what", RUNS)
def test_it_loads_without_a_complaint_and_without_a_network(show: Any, what: str, scheme: str) -> None:
    opened = show(RUNS[what](), color_scheme=scheme)
    opened.picture(f"{what}-{scheme}")
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith("file:")] == []
    assert len(opened.requests) == 1
    paper = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is (scheme == "light")


@pytest.fixture
def four_racks(tmp_path: Path) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A POD of four racks of four machines, a cluster: what the controller tells of it, and two cables exchanged."""
    pod = load(str(Shape(racks=4, machines=4, ilds=4, topology="mesh", first_octet=10).write(tmp_path)))
    agents = [machine.agent for rack in pod.racks for machine in rack.machines]
    named = re.sub(r"\bag(\d\d)\b", lambda match: agents[int(match[1]) - 1], json.dumps(four_domains(swapped=True)))
    run = {**json.loads(named), "cluster": pod.desired()["clusters"][0]["id"]}
    partitions = [
        {"id": f"p{number:02}", "cluster": run["cluster"], "allocation": "all", "size": 4, "state": "ACTIVE"}
        | {"ipus": [{"ild": number // 4, "topology_id": 4 * (number % 4) + ipu} for ipu in range(4)]}
        for number in range(12)
    ]
    allocations = [{"id": "all", "cluster": run["cluster"], "agents": agents[:14]}]
    return pod, {**pod.desired(), "allocations": allocations, "partitions": partitions}, run


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_cable_between_racks_is_shown_in_each(show: Any, four_racks: Any, scheme: str) -> None:
    pod, told, run = four_racks
    opened = show(run, told, pod, color_scheme=scheme)
    opened.picture(f"four-racks-{scheme}")
    page = opened.page
    assert [page.locator("details.rack").nth(number).get_attribute("open") for number in range(4)] == ["", "", "", None]
    far = page.locator("details.rack").nth(2).locator(".cable.failed[tabindex='0']").first
    far.focus()
    assert "ag.01.02 port 1 – ag.02.02 port 2" in str(page.locator("#tip").text_content())
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('details.rack') === document.querySelector('details.rack')")
    assert opened.complaints == []


def test_the_cable_that_failed_is_marked_and_named(show: Any) -> None:
    page = show(failing()).page
    failed = page.locator(".cable.failed[aria-label]")
    assert failed.count() == 1
    assert "ag03 port 7 – ag04 port 3" in str(failed.get_attribute("aria-label"))
    assert failed.locator("use").count() == 1, "a sign beside the colour"
    dashes = page.evaluate(
        "s => getComputedStyle(document.querySelector(s)).strokeDasharray", ".cable.failed[id] .seen"
    )
    assert dashes != "none"
    failed.locator(".hit").hover(force=True)
    assert "ag03 port 7 – ag04 port 3" in str(page.locator("#tip").text_content())
    page.locator("h1").hover()
    assert page.locator("#tip").text_content() == ""


def test_the_keyboard_reaches_it(show: Any) -> None:
    page = show(failing()).page
    for _press in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.cable.failed')"):
            break
    assert "ag03 port 7 – ag04 port 3" in str(page.locator("#tip").text_content())
    assert page.locator(".cable.failed[aria-label]").evaluate(
        "each => getComputedStyle(each.querySelector('.seen')).stroke"
    )


def test_the_arrow_keys_go_along_the_cables(show: Any) -> None:
    page = show(passing()).page
    for _step in range(50):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.cable')"):
            break
    tip = page.locator("#tip")
    assert "ag01 port 5 – ag02 port 1: passed Cabling and IPU-Link and Traffic." in str(tip.text_content())
    page.keyboard.press("ArrowDown")
    assert "ag01 port 6 – ag02 port 2" in str(tip.text_content())
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert "Sync-Link cable, ag15 port 7 – ag16 port 3" in str(tip.text_content()), "the last one"
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.matches('.cable')"), "one stop for all that is well"


def test_the_far_end_of_a_cable_leads_to_it(show: Any) -> None:
    page = show(domains()).page
    page.locator("a.cable.failed .hit").hover(force=True)
    assert "GW-Link cable, ag02 port 1 – ag04 port 2" in str(page.locator("#tip").text_content())


def test_no_script_but_its_own_can_run(show: Any) -> None:
    opened = show(passing())
    opened.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "document.title = 'gone'";
          document.body.append(script);
        }"""
    )
    assert opened.page.title() == "twin – rack report"
    assert "Content Security Policy" in opened.complaints[0]


def test_what_to_do_leads_to_the_cable(show: Any) -> None:
    page = show(failing()).page
    page.locator("details.rack").first.locator("summary").click()  # closed
    page.get_by_role("link", name="show").first.click()
    assert page.locator("details.rack").first.evaluate("each => each.open")
    assert page.evaluate("document.activeElement.matches('.cable.failed')")
    assert "ag03 port 7" in str(page.locator("#tip").text_content())


def test_it_fits_on_a_phone(show: Any) -> None:
    for name, run in (("fail", failing()), ("five-faults", five_faults())):
        opened = show(run, viewport=PHONE, device_scale_factor=2)
        opened.picture(f"{name}-phone")
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_prints_with_everything_open(show: Any) -> None:
    page = show(passing()).page
    page.locator("details.rack").first.locator("summary").click()
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.getElementById('tip')).display") == "none"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.rack").first.evaluate("each => each.open")
    (PICTURES / "pass.pdf").write_bytes(printed)
    (PICTURES / "five-faults.pdf").write_bytes(show(five_faults()).page.pdf(format="A4"))


def test_a_hostile_name_does_nothing(show: Any) -> None:
    told, run = info(), failing()
    told["partitions"][0]["id"] = told["agents"][0]["host"] = told["allocations"][0]["id"] = HOSTILE
    run["results"][1]["summary"] = [HOSTILE]
    run["results"][1]["failures"][0]["reason"] = HOSTILE
    opened = show(run, told)
    page = opened.page
    assert page.title().startswith("twin")
    assert page.locator("img").count() == 0
    page.locator(".cable.failed[aria-label] .hit").hover(force=True)
    assert HOSTILE in str(page.locator("#tip").text_content())
    assert (page.title(), opened.complaints) == ("twin – rack report", [])


def test_text_stands_out_from_what_is_behind_it(show: Any) -> None:
    """Contrast of at least 4.5 (WCAG 2.2 AA) for all text outside of the drawing, light and dark."""
    for scheme in ("light", "dark"):
        page = show(failing(), color_scheme=scheme).page
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
    const [one, two] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) found.push(`${element.className || element.tagName}: ${ratio.toFixed(2)}`);
  }
  return [...new Set(found)];
}"""
