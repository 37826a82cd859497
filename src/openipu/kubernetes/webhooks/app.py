# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP application of the webhooks.

The API server calls it for each IPUJob and each pod. Webhooks only read, so they also answer dry runs.
"""

# Without ``from __future__ import annotations``: FastAPI evaluates annotations that name local functions.

import asyncio
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from openipu.kubernetes.webhooks import reviews
from openipu.kubernetes.webhooks.jobs import JobWebhooks
from openipu.kubernetes.webhooks.pods import PodWebhook
from openipu.kubernetes.webhooks.reviews import Answer, InvalidReviewError, Review

MUTATE_JOB = "/mutate-graphcore-ai-v1alpha1-ipujob"
VALIDATE_JOB = "/validate-graphcore-ai-v1alpha1-ipujob"
MUTATE_POD = "/mutate-v1-pod"

MAX_BYTES = 8 * 1024 * 1024  # the API server accepts objects of up to 3 MiB; a review has the old and the new one
_BODY_SECONDS = 10.0  # until a body must have arrived
_BODIES = 32  # at the same time, so that memory is limited


class BodyTooLargeError(Exception):
    """Raised for a body above the limit."""

    error_code = "OPU603"


class BodyTimeoutError(Exception):
    """Raised for a body that does not arrive in time."""

    error_code = "OPU622"


_FAILURES: dict[type[Exception], int] = {InvalidReviewError: 400, BodyTimeoutError: 408, BodyTooLargeError: 413}


def create(jobs: JobWebhooks, pods: PodWebhook) -> FastAPI:
    """Return the application."""
    app = FastAPI(openapi_url=None)
    bodies = asyncio.Semaphore(_BODIES)
    for kind in _FAILURES:
        app.add_exception_handler(kind, _failure)

    def serve(path: str, answer: Callable[[Review], Awaitable[Answer]]) -> None:
        async def endpoint(request: Request) -> JSONResponse:
            async with bodies:
                review = reviews.parse(await _body(request))
            return JSONResponse(reviews.encode(review, await answer(review)))

        app.add_api_route(path, endpoint, methods=["POST"])

    serve(MUTATE_JOB, jobs.mutate)
    serve(VALIDATE_JOB, jobs.validate)
    serve(MUTATE_POD, pods.mutate)
    return app


async def _body(request: Request) -> bytes:
    """Return the body of a request. Raises BodyTooLargeError and BodyTimeoutError."""
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > MAX_BYTES:
        raise _too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise _too_large()
    except TimeoutError:
        raise BodyTimeoutError(f"The body has not arrived within {_BODY_SECONDS:g} s. Send it again.") from None
    return bytes(body)


def _too_large() -> BodyTooLargeError:
    return BodyTooLargeError(f"The body has more than {MAX_BYTES} bytes. Send a smaller object.")


async def _failure(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"message": str(error)}, next(each for kind, each in _FAILURES.items() if type(error) is kind))
