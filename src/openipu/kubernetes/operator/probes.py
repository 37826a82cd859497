# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes of kubelet. Each check returns the reason of its failure, or an empty text.

An event loop that is blocked fails both probes, because they are not answered in time.
"""

from __future__ import annotations

import http
from collections.abc import Callable, Mapping

from fastapi import FastAPI
from fastapi.responses import JSONResponse

Check = Callable[[], str]


def create(live: Mapping[str, Check], ready: Mapping[str, Check]) -> FastAPI:
    """Return the application with ``/healthz``, which restarts the container, and ``/readyz``. Checks have names."""
    app = FastAPI(openapi_url=None)

    @app.get("/healthz")
    async def healthz() -> JSONResponse:
        return _answer(live)

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        return _answer({**live, **ready})

    return app


def _answer(checks: Mapping[str, Check]) -> JSONResponse:
    failures = {name: reason for name, check in checks.items() if (reason := check())}
    if failures:
        return JSONResponse({"status": "failed", "failures": failures}, http.HTTPStatus.SERVICE_UNAVAILABLE)
    return JSONResponse({"status": "ok"})
