# SPDX-License-Identifier: GPL-3.0-or-later
"""Log lines of unexpected errors: the first traceback, and a limit."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
import structlog

from openipu.process import log, log_rate
from openipu.vipu.api.status import status


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return a function to log as a service does, with a limit of its own: loggers keep the first one."""
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def start() -> None:
        log.configure("json", "info")
        monkeypatch.setattr("openipu.vipu.api.status._log", structlog.get_logger("openipu.vipu.api.guard"))

    yield start
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


def first_place() -> Exception:
    try:
        raise KeyError("first")
    except KeyError as error:
        return error


def second_place() -> Exception:
    try:
        return first_place() and next(iter(()))
    except StopIteration as error:
        return error


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_repeated_error_has_one_traceback_and_few_lines(
    configure: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    configure()
    replies = {status(first_place(), "/Service/Method") for _ in range(1000)}
    (reply,) = replies  # every client receives the reference of a line that is in the log
    written = lines(capsys)
    assert len(written) == log_rate.MAX_LINES
    assert ["Traceback" in line.get("exception", "") for line in written] == [True] + [False] * (len(written) - 1)
    reference = written[0]["reference"]
    assert reply == (
        grpc.StatusCode.INTERNAL,
        f"Internal error: see reference {reference} in the log of vipu-server.",
    )
    _, other = status(second_place(), "/Service/Method")
    (line,) = lines(capsys)
    assert line["reference"] in other
    assert line["reference"] != reference
    assert "StopIteration" in line["exception"]


def test_the_next_window_has_the_traceback_again_and_the_count(
    configure: Callable[[], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure()
    for _ in range(100):
        status(first_place(), "/Service/Method")
    lines(capsys)
    monkeypatch.setattr(log_rate, "WINDOW", 0.0)
    status(first_place(), "/Service/Method")
    (line,) = lines(capsys)
    assert line["suppressed"] == 100 - log_rate.MAX_LINES
    assert "KeyError" in line["exception"]


def test_an_error_without_traceback_has_a_reference(
    configure: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    configure()
    _, message = status(ValueError("never raised"), "/Service/Method")
    (line,) = lines(capsys)
    assert line["reference"] in message
