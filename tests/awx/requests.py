# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain requests to the stand-in."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from base64 import b64encode
from ssl import create_default_context
from typing import Any

from tests.awx.standin.app import ADMINISTRATOR, PASSWORD
from tests.awx.standin.server import Server


class Requests:
    """Requests to a stand-in as one user."""

    def __init__(self, server: Server, user: str = ADMINISTRATOR, password: str = PASSWORD) -> None:
        self._server = server
        self._authorization = "Basic " + b64encode(f"{user}:{password}".encode()).decode()
        self._tls = create_default_context(cafile=str(server.ca))

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and body of the answer."""
        request = urllib.request.Request(
            self._server.url + "/api/v2/" + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": self._authorization, "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, context=self._tls) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def made(self, path: str, **fields: Any) -> int:
        """Create an object and return its ID."""
        status, body = self("POST", path, fields)
        assert status == 201, body
        return int(body["id"])
