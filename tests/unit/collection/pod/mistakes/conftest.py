# SPDX-License-Identifier: GPL-3.0-or-later
"""Every mistake that a test in this folder provokes is on the page of messages."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.mistakes import PodError

from tests import ROOT

_ROW = re.compile(r"\| `(.*?)` \|")
_WORD = re.compile(r"[a-z]{3}")  # a row without one is a value only


@functools.cache
def _rows() -> tuple[re.Pattern[str], ...]:
    """Return a pattern for each message on the page. The object with the mistake may precede it."""
    page = (ROOT / "docs/reference/messages/pod.md").read_text()
    texts = [text for text in _ROW.findall(page) if _WORD.search(text)]
    return tuple(re.compile("(?:.*: )?" + _pattern(text), re.DOTALL) for text in texts)


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
    missing = sorted(each for each in messages if not any(row.match(each) for row in _rows()))
    assert not missing, "not in docs/reference/messages/pod.md"
