# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of a whole cloud: one message with the remedy, before and during the writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import Cloud, CloudError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.task import OPENSTACK_POD_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.task_support import NETWORKS, run

PORTS = {"ports": [{"name": f"m{n}", "network": "data", "addresses": [f"10.5.0.{n}"]} for n in range(1, 41)]}


class Services(BaseHTTPRequestHandler):
    """Keystone with one region, and a Neutron that answers with the status and body of the server."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.startswith("/v3"):
            self.reply(200, {"version": {"id": "v3.14", "status": "stable", "links": [self.link("/v3/")]}})
        elif self.path.startswith("/compute"):
            links = [self.link("/compute/v2.1/")]
            versions = {"version": self.server.answer[1], "min_version": "2.1"}  # type: ignore[attr-defined]
            self.reply(200, {"version": {"id": "v2.1", "status": "CURRENT", "links": links, **versions}})
        else:
            self.reply(*self.server.answer)  # type: ignore[attr-defined]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        url = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
        catalog = []
        for kind, path in (("network", "network"), ("compute", "compute/v2.1")):
            endpoint = {"interface": "public", "region": "one", "region_id": "one", "url": f"{url}/{path}", "id": kind}
            catalog.append({"type": kind, "name": kind, "id": kind, "endpoints": [endpoint]})
        token = {"methods": ["password"], "user": {"id": "u", "name": "u"}, "project": {"id": "p", "name": "p"}}
        dates = {"expires_at": "2099-01-01T00:00:00.000000Z", "issued_at": "2026-01-01T00:00:00.000000Z"}
        self.reply(201, {"token": {**token, **dates, "catalog": catalog}}, {"X-Subject-Token": "t"})

    def link(self, path: str) -> dict[str, str]:
        return {"rel": "self", "href": f"http://127.0.0.1:{self.server.server_port}{path}"}  # type: ignore[attr-defined]

    def reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def services() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Services)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def connect(server: ThreadingHTTPServer, status: int, body: Any, region: str = "one") -> Cloud:
    server.answer = (status, body)  # type: ignore[attr-defined]
    url = f"http://127.0.0.1:{server.server_port}"
    auth = {"auth_url": f"{url}/v3", "username": "u", "password": "p", "project_name": "p"}
    auth |= {"user_domain_id": "default", "project_domain_id": "default"}
    override = {"network_endpoint_override": f"{url}/network"} if region == "one" else {}
    return Cloud({"auth": auth, "region_name": region, "app_name": "test", "api_timeout": 5, **override}, 1)


def read(server: ThreadingHTTPServer, status: int, body: Any, region: str = "one") -> Any:
    with closing(connect(server, status, body, region)) as cloud:
        return cloud.request("network", "GET", "/networks")


@pytest.mark.parametrize(
    ("status", "body", "region", "message", "remedy"),
    [
        (
            200,
            {"networks": []},
            "nowhere",
            "Cannot find Neutron in the service catalog: ",
            "Check region_name and inter",
        ),
        (
            503,
            {"error": {"message": "no database"}},
            "one",
            "Neutron is unavailable: no database.",
            "Run the task again",
        ),
        (
            *(403, {"NeutronError": {"type": "PolicyNotAuthorized", "message": "rule:create"}}, "one"),
            *("Cannot use Neutron with these credentials: rule:create.", "Use those of an administrator of the cloud."),
        ),
        (
            *(403, {"error": {"message": "You are not authorized to perform the requested action."}}, "one"),
            *("Cannot use Neutron with these credentials: You are not", "Use those of an administrator of the cloud."),
        ),
    ],
)
def test_errors_of_the_whole_cloud_have_a_remedy(
    services: ThreadingHTTPServer, status: int, body: Any, region: str, message: str, remedy: str
) -> None:
    with pytest.raises(CloudError) as failure:
        read(services, status, body, region)
    assert failure.value.message.startswith(message)
    assert remedy in failure.value.message
    assert failure.value.fatal


@pytest.mark.parametrize("newest", ["2.95", "2.96"])
def test_the_newest_microversion_is_read_from_the_service(services: ThreadingHTTPServer, newest: str) -> None:
    with closing(connect(services, 200, newest)) as cloud:
        assert cloud.max_microversion("compute") == tuple(map(int, newest.split(".")))


def test_an_exceeded_quota_is_no_missing_permission(services: ThreadingHTTPServer) -> None:
    with pytest.raises(CloudError, match="Quota exceeded for cores") as failure:
        read(services, 403, {"forbidden": {"message": "Quota exceeded for cores: Requested 4."}})
    assert not failure.value.fatal


@pytest.mark.parametrize(
    "error",
    [
        CloudError("Neutron is unavailable: no database. Run the task again later.", 503),
        CloudError("Cannot use Neutron with these credentials: no. Use others.", 403, "PolicyNotAuthorized"),
        CloudError("Cannot connect to Neutron: no route. Check auth_url."),
    ],
)
def test_an_error_of_the_whole_cloud_is_one_message(error: CloudError) -> None:
    cloud = FakeCloud({**NETWORKS, "POST /ports": error})
    with pytest.raises(TaskError) as failure:
        run(OPENSTACK_POD_NETWORK, cloud, pod="pod", config=PORTS)
    assert failure.value.message == error.message
    assert len(cloud.writes) <= 4  # those that had already started
