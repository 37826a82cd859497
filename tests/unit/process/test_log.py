# SPDX-License-Identifier: GPL-3.0-or-later
"""Text logs contain neither control characters nor metadata of calls."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator

import pytest
import structlog

from openipu.process import log


@pytest.fixture
def text(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    before = structlog.get_config()
    handlers, level = logging.root.handlers[:], logging.root.level
    log.configure("text", "info")
    yield sys.stderr  # type: ignore[misc]
    structlog.configure(**before)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def test_control_characters_are_escaped(text: io.StringIO) -> None:
    structlog.get_logger("new").warning("request rejected", user="a\x1b[2J\nb\u202ec", peer="ä")
    logging.getLogger("library").warning("line\rother")
    written = text.getvalue()
    assert r"user=a\x1b[2J\nb\u202ec" in written
    assert "peer=ä" in written
    assert r"line\rother" in written
    assert len(written.splitlines()) == 2


def test_metadata_that_is_not_text_is_not_logged(text: io.StringIO) -> None:
    logger = logging.getLogger("grpc._cython.cygrpc")
    logger.error("Invalid encoding on %s", b"secret\xff")
    logger.error("another error")
    written = text.getvalue()
    assert "secret" not in written
    assert "another error" in written
