# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion of exceptions to a gRPC status and a stable error code."""

from __future__ import annotations

import hashlib
import traceback

import grpc
import structlog
from google.protobuf.message import DecodeError

from openipu.vipu.api.auth import AuthError
from openipu.vipu.api.exchange import RECEIVE_SECONDS, CancelledError, LateRequestError, NoRequestError
from openipu.vipu.domain.errors import Code, RuleError
from openipu.vipu.storage.event_log import CompactedError
from openipu.vipu.storage.interface import LeadershipLostError, NotLeaderError, StoppedError, StoreError

_log = structlog.get_logger("openipu.vipu.api.guard")

_CODES = {code.value[0]: code for code in grpc.StatusCode}


def error_code(error: Exception) -> str:
    """Return the stable code of an error."""
    if isinstance(error, DecodeError):
        return f"OPU{600 + Code.INVALID_ARGUMENT}"
    return getattr(error, "error_code", "OPU618")


def status(error: Exception, method: str) -> tuple[grpc.StatusCode, str]:
    """Return status code and message for an error of a method. Unexpected ones are logged."""
    if isinstance(error, RuleError):
        return _CODES[error.code], error.message
    if isinstance(error, AuthError):
        return grpc.StatusCode.UNAUTHENTICATED, str(error)
    if isinstance(error, DecodeError):
        return (
            grpc.StatusCode.INVALID_ARGUMENT,
            f"Cannot decode the request of {method}: it is not a valid message. Update the client.",
        )
    if isinstance(error, CancelledError):
        return grpc.StatusCode.CANCELLED, "The client cancelled the call."
    if isinstance(error, LateRequestError):
        reason = f"it did not arrive within {RECEIVE_SECONDS:g} s"
        return grpc.StatusCode.DEADLINE_EXCEEDED, f"Cannot read the request of {method}: {reason}. Try again."
    if isinstance(error, NoRequestError):
        return grpc.StatusCode.UNIMPLEMENTED, f'"{method}" requires exactly one request message.'
    if isinstance(error, CompactedError):
        return grpc.StatusCode.OUT_OF_RANGE, str(error)
    if isinstance(error, StoppedError | NotLeaderError | LeadershipLostError):
        return grpc.StatusCode.UNAVAILABLE, str(error)
    if isinstance(error, StoreError):
        return grpc.StatusCode.INTERNAL, str(error)
    reference = _reference(error)
    _log.error("internal error", method=method, reference=reference, exc_info=error, party=reference)
    return grpc.StatusCode.INTERNAL, f"Internal error: see reference {reference} in the log of vipu-server."


def _reference(error: Exception) -> str:
    """Return a name of the kind of an error and its place in the code.

    Equal errors have the same one, so clients receive a reference whose traceback is in the log.
    """
    places = traceback.extract_tb(error.__traceback__)[-1:]
    text = f"{type(error).__qualname__} {[(place.filename, place.lineno) for place in places]}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]
