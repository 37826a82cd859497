# SPDX-License-Identifier: GPL-3.0-or-later
"""REST client with the few requests that create and monitor a cloud."""

from __future__ import annotations

import functools
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from openipu.process.background import ProcessError

from .probes import Probe
from .site import Site

TIMEOUT_SECONDS = 60.0  # of one request
POLL_SECONDS = 0.5  # between two requests of a probe
_VERSION = {"X-OpenStack-Manila-API-Version": "2.60"}  # the first version without projects in its paths


class Admin:
    """Session of the administrator. Every request raises ProcessError when it fails."""

    def __init__(self, site: Site, system: bool = False) -> None:
        """Log in for the project `admin`, or for the whole system, which some requests of Ironic need."""
        self.site = site
        self.token = ""
        user = {"name": "admin", "domain": {"id": "default"}, "password": site.secrets.admin}
        project = {"project": {"name": "admin", "domain": {"id": "default"}}}
        body = {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"system": {"all": True}} if system else project,
            }
        }
        headers, _ = self._send("POST", "keystone", "/v3/auth/tokens", body)
        self.token = headers["X-Subject-Token"]

    def get(self, service: str, path: str) -> Any:
        """Return the content of a resource."""
        return self._send("GET", service, path)[1]

    def post(self, service: str, path: str, body: object) -> Any:
        """Create a resource and return it."""
        return self._send("POST", service, path, body)[1]

    def put(self, service: str, path: str) -> None:
        """Create an association, such as a role of a user."""
        self._send("PUT", service, path)

    def _send(self, method: str, service: str, path: str, body: object = None) -> tuple[Any, Any]:
        request = urllib.request.Request(  # noqa: S310  an address of this cloud
            self.site.url(service, path),
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "X-Auth-Token": self.token, **_VERSION},
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
                content = response.read()
                return response.headers, json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            reason = error.read().decode(errors="replace")[:200]
            raise ProcessError(f"Cannot {method} {path} of {service}: {error.code} {reason}") from None
        except OSError as error:
            raise ProcessError(f"Cannot {method} {path} of {service}: {error}.") from None


@functools.cache
def _admin(site: Site) -> Admin:
    return Admin(site)


def is_registered(site: Site, service: str, path: str, collection: str, **expected: object) -> Probe:
    """Return a probe for an object with these values in a collection, such as an agent without its own API."""
    find = _finder(site, service, path, collection, expected)
    return lambda: bool(find())


def sends_heartbeat(site: Site, service: str, path: str, collection: str, **expected: object) -> Probe:
    """Return a probe for a new heartbeat in the record of an agent with these values.

    The record alone is not sufficient: it precedes the first heartbeat, and that of a killed agent is old.
    """
    find = _finder(site, service, path, collection, expected)
    first: dict[int, object] = {}

    def probe() -> bool:
        return any(first.setdefault(item["id"], item["updated_at"]) != item["updated_at"] for item in find())

    return probe


def _finder(
    site: Site, service: str, path: str, collection: str, expected: dict[str, object]
) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that lists the objects with these values, none when it is called again too early."""
    last = 0.0

    def find() -> list[dict[str, Any]]:
        nonlocal last
        if time.monotonic() - last < POLL_SECONDS:
            return []
        last = time.monotonic()
        try:
            listed = _admin(site).get(service, path)[collection]
        except ProcessError:
            return []
        return [item for item in listed if all(item.get(name) == value for name, value in expected.items())]

    return find
