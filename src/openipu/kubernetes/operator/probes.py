# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes of kubelet."""

from __future__ import annotations

import http
from collections.abc import Callable

from fastapi import FastAPI
from fastapi.responses import JSONResponse


def create(ready: Callable[[], bool] = lambda: True) -> FastAPI:
    """Return the application with ``/healthz`` and ``/readyz``. ``ready``: whether the webhooks can be called."""
    app = FastAPI(openapi_url=None)

    @app.get("/healthz")
    async def healthy() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    async def is_ready() -> JSONResponse:
        if ready():
            return JSONResponse({"status": "ok"})
        return JSONResponse({"status": "The webhooks have no certificate yet."}, http.HTTPStatus.SERVICE_UNAVAILABLE)

    return app
