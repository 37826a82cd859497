# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes of kubelet."""

from __future__ import annotations

from fastapi import FastAPI


def create() -> FastAPI:
    """Return the application with ``/healthz`` and ``/readyz``."""
    app = FastAPI(openapi_url=None)

    @app.get("/healthz")
    @app.get("/readyz")
    async def healthy() -> dict[str, str]:
        return {"status": "ok"}

    return app
