# SPDX-License-Identifier: GPL-3.0-or-later
"""Sources of the documentation site: names, links and navigation."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests import ROOT
from tools import links
from tools.documentation import changes, diagrams, pages
from tools.reference.__main__ import PAGES
from tools.reference.__main__ import pages as generated


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("README.md", "overview"),
        ("docs/README.md", "index"),
        ("docs/how-to/power.md", "how-to/power"),
        ("roles/common/README.md", "roles/common"),
        ("CONTRIBUTING.md", "project/contributing"),
    ],
)
def test_names_of_pages(path: str, name: str) -> None:
    assert pages.docname(path) == name


def test_links_are_valid_in_the_site() -> None:
    found = pages.converted("docs/how-to/monitoring.md", pages.site_pages())
    assert "](../roles/monitoring.md)" in found
    assert f"]({pages.repository()}/tree/main/roles/monitoring/files/dashboards)" in found
    assert "](real-rack.md#install-the-collection)" in found


def test_lines_stay_the_same() -> None:
    source = (ROOT / "docs/how-to/power.md").read_text()
    assert len(pages.converted("docs/how-to/power.md", pages.site_pages()).splitlines()) == len(source.splitlines())


def test_every_page_is_in_the_navigation() -> None:
    names = pages.site_pages()
    contents = [path for path in names if pages.CONTENTS in (ROOT / path).read_text()]
    linked = set()
    for path in contents:
        site = ROOT / "site"
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", pages.converted(path, names), re.DOTALL):
            entries = re.findall(r"^.+ <(.+)>$", tree, re.MULTILINE)
            linked |= {
                ((site / names[path]).parent / entry).resolve().relative_to(site).as_posix() for entry in entries
            }
    assert sorted(set(names.values()) - linked - {"index"}) == []


def test_the_changelog_has_the_fragments() -> None:
    assert "\nMajor Changes\n-------------\n\n- " in changes.page()


def test_drawings_have_names_of_their_own() -> None:
    first, second = (diagrams.drawing(f"flowchart LR\n a --> {name}") for name in "bc")
    assert first.startswith("<svg")
    identifiers = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (first, second)]
    assert identifiers[0] and not identifiers[0] & identifiers[1]


def test_generated_pages_are_current() -> None:
    assert [name for name, text in generated().items() if (PAGES / name).read_text() != text] == []


@pytest.mark.parametrize(
    ("source", "call", "name"),
    [
        ("roles/monitoring/templates/rules/alerts.yml.j2", r"\[\[ alert\(", "monitoring-alerts.md"),
        (
            "charts/ipu-operator/templates/monitoring/prometheusrule.yaml",
            r"include \"ipu-operator\.alert\"",
            "kubernetes-alerts.md",
        ),
    ],
)
def test_every_alert_is_listed(source: str, call: str, name: str) -> None:
    rows = re.findall(rf"^\| \[\w+\]\(\.\./how-to/{name}#", (PAGES / "alerts.md").read_text(), re.MULTILINE)
    assert len(rows) == len(re.findall(call, (ROOT / source).read_text())) > 0


def test_every_program_has_a_page() -> None:
    scripts = re.search(r"\[project\.scripts\]\n(.*?)\n\n", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    assert scripts
    programs = set(re.findall(r"^([\w-]+) =", scripts[1], re.MULTILINE)) - {"vipu-cli"}  # in command-lines.md
    assert programs <= {path.stem for path in (PAGES / "commands").glob("*.md")}


def test_code_is_not_a_link() -> None:
    assert not links.LINK.search(links.without_code("```\n[a](b)\n```\n`[a](b)`\n"))


def test_pictures_are_valid_and_without_paths_of_a_computer() -> None:
    pictures = sorted((ROOT / "docs/pictures").iterdir())
    assert len(pictures) == 8
    for picture in pictures:
        text = picture.read_text()
        ElementTree.fromstring(text)
        assert "/tmp" not in text
        assert str(ROOT) not in text
        assert not re.search(r'(?:href|src)="(?!#)', text), "a picture loads nothing"
