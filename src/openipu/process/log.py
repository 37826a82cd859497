# SPDX-License-Identifier: GPL-3.0-or-later
"""Structured logs on standard error: one event per line, as text or JSON."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from typing import Literal, TextIO, cast

from openipu.process.log_rate import RateLimit
from openipu.process.plain_structlog import structlog

LogFormat = Literal["text", "json"]
LEVELS = ("debug", "info", "warning", "error")


class _Unfailing(io.TextIOBase):
    """Stream that ignores write errors: a closed reader or a full disk must not stop a controller."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def printable(logger: object, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Escape characters that control a terminal or start a line: clients choose some values, such as a user id."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in value)
    return event


def without_metadata(record: logging.LogRecord) -> bool:
    """Reject records with metadata of a call, which may be an access key: gRPC logs values that are not UTF-8."""
    return not str(record.msg).startswith("Invalid encoding")


def configure(log_format: LogFormat, level: str) -> None:
    """Configure logging for this process and its libraries. Access keys are never logged."""
    number = getattr(logging, level.upper())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: structlog.typing.Processor
    if log_format == "json":
        shared.append(structlog.processors.format_exc_info)
        render = structlog.processors.JSONRenderer()
    else:
        shared.append(printable)
        render = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    stream = cast(TextIO, _Unfailing(sys.stderr))
    structlog.configure(
        processors=[RateLimit(), *shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=render, foreign_pre_chain=shared))
    logging.getLogger("grpc._cython.cygrpc").addFilter(without_metadata)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
