# SPDX-License-Identifier: GPL-3.0-or-later
"""The page for troubleshooting has an entry for every class of errors, and quotes only messages of the code."""

from __future__ import annotations

import re

import pytest

from openipu.shared.errors import ERRORS

from .messages import ROOT, is_known, templates

PAGE = (ROOT / "docs/how-to/troubleshooting.md").read_text()


def quoted() -> list[str]:
    """Return the messages in the headings, and those in the first column of the tables of causes."""
    headings = [
        text for line in re.findall(r"^### (.*)$", PAGE, re.MULTILINE) for text in re.findall(r"`([^`]+)`", line)
    ]
    return headings + re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)


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


def test_an_unknown_message_is_found(known: set[str]) -> None:
    assert is_known("Cannot lock …: another twin command uses it", known)
    assert not is_known("Cannot lock …: another cat uses it", known)


def _ranges() -> list[tuple[str, str]]:
    singles = [(code, code) for code in re.findall(r"OPU\d{3}", PAGE)]
    return singles + re.findall(r"(OPU\d{3}) to (OPU\d{3})", PAGE)
