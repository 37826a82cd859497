# SPDX-License-Identifier: GPL-3.0-or-later
"""The page for troubleshooting has an entry for every class of errors. All pages quote only messages of the code."""

from __future__ import annotations

import re

import pytest

from openipu.shared.errors import ERRORS
from tests import ROOT
from tools.documentation.pages import site_pages
from tools.messages import messages
from tools.reference.messages import AREAS, files, rows

from .messages import FOLDERS, is_known, templates

PAGE = (ROOT / "docs/how-to/troubleshooting.md").read_text()


def quoted() -> list[str]:
    """Return the messages in the headings, and those in the first column of the tables of causes."""
    headings = [
        text for line in re.findall(r"^### (.*)$", PAGE, re.MULTILINE) for text in re.findall(r"`([^`]+)`", line)
    ]
    return headings + re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)


# Headers of the first column of tables with messages.
TABLE = re.compile(
    r"^\| (?:Symptom|Message|Cause in the message|Reason in the message) \|.*\n\|[- |]+\n((?:\|.*\n)+)", re.MULTILINE
)
# Messages of Ansible and of AWX.
FOREIGN = {
    "Credential types that are in use",
    "Failed to parse inventory with 'yaml' plugin",
    "Field … unavailable",
    "Playbook not found for project",
    "Project update failed",
    "could not be verified by inventory plugin 'openipu.pod.pod'",
    "variables_needed_to_start",
}


def in_tables(page: str) -> list[str]:
    """Return the messages in the first columns of the tables of a page."""
    rows = [row for table in TABLE.findall(page) for row in table.splitlines()]
    return [text for row in rows for text in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


@pytest.fixture(scope="module")
def known() -> set[str]:
    return templates()


def test_every_code_has_an_entry() -> None:
    named = {code for first, last in _ranges() for code in ERRORS if first <= code <= last}
    assert sorted(set(ERRORS) - named) == []


def test_every_named_code_exists() -> None:
    assert sorted(set(re.findall(r"OPU\d{3}", PAGE)) - set(ERRORS)) == []


def test_every_quoted_message_is_in_the_code(known: set[str]) -> None:
    names = {"openipu.pod.pod", "pod.yml", "machines.csv", "Hardware failed", "--yes"}
    assert [text for text in quoted() if text not in names and not is_known(text, known)] == []


def test_every_heading_has_a_message() -> None:
    headings = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
    assert headings
    assert [text for text in headings if "`" not in text] == []


def test_tables_of_all_pages_quote_messages_of_the_code(known: set[str]) -> None:
    pages = {name: (ROOT / name).read_text() for name in site_pages() if "/messages/" not in name}
    found = {name: texts for name, page in pages.items() if (texts := in_tables(page))}
    assert len(found) > 10
    unknown = [(name, text) for name, texts in found.items() for text in texts if not is_known(text, known | FOREIGN)]
    assert unknown == []


def test_the_pages_of_messages_cover_all_folders() -> None:
    """The twin prints messages of EOS, which the pages leave out."""
    covered = {file for area in AREAS for places in area.sections.values() for file in files(places)}
    code = {file for folder in FOLDERS if folder != "tools/ee" for file in files((folder,))}
    left_out = [file for file in code - covered if "devices" not in file.parts and messages(file)]
    assert left_out == []


def test_a_page_of_messages_has_message_and_remedy() -> None:
    page = (ROOT / "docs/reference/messages/devices.md").read_text()
    assert "| `Cannot log in to the BMC at … …: access denied` | Check username and password. |" in page


def test_every_message_has_a_remedy() -> None:
    """Messages that users see alone say what to do, or the page says where the message states it."""
    read = {file for area in AREAS for places in area.sections.values() for file in files(places)}
    found = [row for file in sorted(read) for row in rows(file)]
    assert [f"{row.place}: {row.message}" for row in found if not row.remedy and not row.is_cause] == []


def test_the_pages_of_messages_have_no_empty_cells() -> None:
    pages = {file.name: file.read_text() for file in (ROOT / "docs/reference/messages").glob("*.md")}
    assert len(pages) == len(AREAS)
    assert [name for name, page in pages.items() if re.search(r"\| +\|$", page, re.MULTILINE)] == []


def test_an_unknown_message_is_found(known: set[str]) -> None:
    assert is_known("Cannot lock …: another twin command uses it", known)
    assert not is_known("Cannot lock …: another cat uses it", known)


def _ranges() -> list[tuple[str, str]]:
    singles = [(code, code) for code in re.findall(r"OPU\d{3}", PAGE)]
    return singles + re.findall(r"(OPU\d{3}) to (OPU\d{3})", PAGE)
