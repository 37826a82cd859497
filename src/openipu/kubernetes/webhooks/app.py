# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP application of the webhooks.

The API server calls it for each IPUJob and each pod. Webhooks only read, so they also answer dry runs.
"""

# Without ``from __future__ import annotations``: FastAPI evaluates annotations that name local functions.

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from openipu.kubernetes.serving.bodies import BodyBuffer, BodyTimeoutError, BodyTooLargeError, BufferFullError
from openipu.kubernetes.webhooks import reviews
from openipu.kubernetes.webhooks.jobs import JobWebhooks
from openipu.kubernetes.webhooks.pods import PodWebhook
from openipu.kubernetes.webhooks.reviews import Answer, InvalidReviewError, Review

MUTATE_JOB = "/mutate-graphcore-ai-v1alpha1-ipujob"
VALIDATE_JOB = "/validate-graphcore-ai-v1alpha1-ipujob"
MUTATE_POD = "/mutate-v1-pod"

MAX_BYTES = 8 * 1024 * 1024  # the API server accepts objects of up to 3 MiB; a review has the old and the new one
_BODY_SECONDS = 10.0  # until a body must have arrived
_BUFFERED_BYTES = 64 * 1024 * 1024  # of all bodies together

_FAILURES: dict[type[Exception], int] = {
    InvalidReviewError: 400,
    BodyTimeoutError: 408,
    BodyTooLargeError: 413,
    BufferFullError: 503,
}


def create(jobs: JobWebhooks, pods: PodWebhook) -> FastAPI:
    """Return the application."""
    app = FastAPI(openapi_url=None)
    bodies = BodyBuffer(_BUFFERED_BYTES)
    for kind in _FAILURES:
        app.add_exception_handler(kind, _failure)

    def serve(path: str, answer: Callable[[Review], Awaitable[Answer]]) -> None:
        async def endpoint(request: Request) -> JSONResponse:
            async with bodies.read(request.receive, MAX_BYTES, _BODY_SECONDS) as message:
                review = reviews.parse(message.get("body", b""))
            return JSONResponse(reviews.encode(review, await answer(review)))

        app.add_api_route(path, endpoint, methods=["POST"])

    serve(MUTATE_JOB, jobs.mutate)
    serve(VALIDATE_JOB, jobs.validate)
    serve(MUTATE_POD, pods.mutate)
    return app


async def _failure(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"message": str(error)}, next(each for kind, each in _FAILURES.items() if type(error) is kind))
