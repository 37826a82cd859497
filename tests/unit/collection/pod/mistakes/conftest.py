# SPDX-License-Identifier: GPL-3.0-or-later
"""Every mistake that a test in this folder provokes has a row on the page of messages.

Rows such as "invalid value …: …" leave the text to another row, or to a library, and do not count.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.mistakes import PodError

from tests import ROOT

_ROW = re.compile(r"\| `(.*?)` \|")
_WORD = re.compile(r"[A-Za-z]{3,}")
_SECTION = re.compile(r"## `pod\.yml` and .*?(?=\n## )", re.DOTALL)


@functools.cache
def _rows() -> tuple[re.Pattern[str], ...]:
    """Return a pattern for each message on the page. The object with the mistake may precede it."""
    page = (ROOT / "docs/reference/messages/pod.md").read_text()
    of_files = _SECTION.search(page)
    assert of_files
    texts = filter(_says_what, _ROW.findall(of_files[0]))
    patterns = ("(?:.*: )?" + _pattern(text) + "(?:[.,:;] .*)?" for text in texts)
    return tuple(re.compile(pattern, re.DOTALL) for pattern in patterns)


def _says_what(row: str) -> bool:
    """Return whether a row has words of its own, and does not only introduce another text."""
    return len(_WORD.findall(row)) >= (3 if row.endswith(": …") else 1)


def _pattern(text: str) -> str:
    return "['\"]?.*?['\"]?".join(map(re.escape, re.split("…+", text)))


@pytest.fixture(autouse=True)
def _messages_have_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    messages: set[str] = set()
    create = PodError.__init__

    def record(error: PodError, file: str, line: int | None, message: str) -> None:
        if type(error) is PodError and message:  # without one, it only has the place for another error
            messages.add(message)
        create(error, file, line, message)

    monkeypatch.setattr(PodError, "__init__", record)
    yield
    missing = sorted(each for each in messages if not any(row.fullmatch(each) for row in _rows()))
    assert not missing, "not in docs/reference/messages/pod.md"
