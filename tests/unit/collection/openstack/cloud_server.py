# SPDX-License-Identifier: GPL-3.0-or-later
"""Server with the parts of a cloud that openstacksdk itself needs: Keystone with its catalog, and versions."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import Cloud


class Services(BaseHTTPRequestHandler):
    """Keystone with one region, and a Neutron that answers with the status and body of the server."""

    protocol_version = "HTTP/1.1"
    server: CloudServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.startswith("/v3"):
            self.reply(200, {"version": {"id": "v3.14", "status": "stable", "links": [self.link("/v3/")]}})
        elif self.path.startswith("/compute"):
            links = [self.link("/compute/v2.1/")]
            versions = {"version": self.server.answer[1], "min_version": "2.1"}
            self.reply(200, {"version": {"id": "v2.1", "status": "CURRENT", "links": links, **versions}})
        else:
            self.reply(*self.server.answer)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.logins += 1
        catalog = []
        for kind in self.server.types:
            path = "compute/v2.1" if kind == "compute" else kind
            endpoint = {
                "interface": "public",
                "region": "one",
                "region_id": "one",
                "url": f"{self.server.url}/{path}",
                "id": kind,
            }
            catalog.append({"type": kind, "name": kind, "id": kind, "endpoints": [endpoint]})
        token = {"methods": ["password"], "user": {"id": "u", "name": "u"}, "project": {"id": "p", "name": "p"}}
        dates = {"expires_at": "2099-01-01T00:00:00.000000Z", "issued_at": "2026-01-01T00:00:00.000000Z"}
        self.reply(
            201, {"token": {**token, **dates, "catalog": catalog}}, {"X-Subject-Token": f"token {self.server.logins}"}
        )

    def link(self, path: str) -> dict[str, str]:
        return {"rel": "self", "href": f"{self.server.url}{path}"}

    def reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class CloudServer(ThreadingHTTPServer):
    """Server on loopback.

    ``answer`` is the status and the body of Neutron, ``logins`` the number of tokens, and ``types`` are the services
    in the catalog.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Services)
        self.answer: tuple[int, Any] = (200, {})
        self.logins = 0
        self.types: tuple[str, ...] = ("network", "compute")

    @property
    def auth(self) -> dict[str, str]:
        """Credentials of a user."""
        user = {"username": "u", "password": "p", "user_domain_id": "default"}
        return {"auth_url": f"{self.url}/v3", **user, "project_name": "p", "project_domain_id": "default"}

    @property
    def url(self) -> str:
        """URL of all services."""
        return f"http://127.0.0.1:{self.server_port}"


def connect(server: CloudServer, status: int, body: Any, region: str = "one") -> Cloud:
    """Return a cloud whose Neutron sends this answer."""
    server.answer = (status, body)
    override = {"network_endpoint_override": f"{server.url}/network"} if region == "one" else {}
    return Cloud({"auth": server.auth, "region_name": region, "app_name": "test", "api_timeout": 5, **override}, 1)
