# SPDX-License-Identifier: GPL-3.0-or-later
"""The few requests that make and watch the cloud, before any client library can know it."""

from __future__ import annotations

import functools
import json
import time
import urllib.error
import urllib.request
from typing import Any

from openipu.twin.processes import ProcessError

from .probes import Probe
from .site import Site

SECONDS = 60.0  # that one request may take
PERIOD = 0.5  # seconds between two looks at what has registered
_VERSION = {"X-OpenStack-Manila-API-Version": "2.60"}  # since when its paths do without a project


class Admin:
    """The administrator, signed in. Every request raises ProcessError when it is refused."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.token = ""
        user = {"name": "admin", "domain": {"id": "default"}, "password": site.secrets.admin}
        body = {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": {"name": "admin", "domain": {"id": "default"}}},
            }
        }
        headers, _ = self._send("POST", "keystone", "/v3/auth/tokens", body)
        self.token = headers["X-Subject-Token"]

    def get(self, service: str, path: str) -> Any:
        """What is there."""
        return self._send("GET", service, path)[1]

    def post(self, service: str, path: str, body: object) -> Any:
        """Make something."""
        return self._send("POST", service, path, body)[1]

    def put(self, service: str, path: str) -> None:
        """Say that something is so."""
        self._send("PUT", service, path)

    def _send(self, method: str, service: str, path: str, body: object = None) -> tuple[Any, Any]:
        request = urllib.request.Request(  # noqa: S310  an address of our own
            self.site.url(service, path),
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "X-Auth-Token": self.token, **_VERSION},
        )
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:  # noqa: S310
                content = response.read()
                return response.headers, json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            why = error.read().decode(errors="replace")[:200]
            raise ProcessError(f"{service} refused {method} {path}: {error.code} {why}") from None
        except OSError as error:
            raise ProcessError(f"{service} did not answer {method} {path}: {error}.") from None


@functools.cache
def _signed_in(site: Site) -> Admin:
    return Admin(site)


def registered(site: Site, service: str, path: str, collection: str, **wanted: object) -> Probe:
    """Whether a service lists something with these values: a process that has no API of its own, say."""
    last = 0.0

    def probe() -> bool:
        nonlocal last
        if time.monotonic() - last < PERIOD:
            return False
        last = time.monotonic()
        try:
            listed = _signed_in(site).get(service, path)[collection]
        except ProcessError:
            return False
        return any(all(item.get(name) == value for name, value in wanted.items()) for item in listed)

    return probe
