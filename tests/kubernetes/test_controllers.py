# SPDX-License-Identifier: GPL-3.0-or-later
"""V-IPU controllers of the proxy: silent ones, one with several V-IPU clusters, and one with TLS and access keys."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api import auth
from openipu.vipu.domain.model import Put, Role
from openipu.vipu.tls import issue, load
from tests.integration.vipu_servers import InProcess, InstantLife, listed, pod
from tests.kubernetes.proxies import Proxy
from tests.waiting import until

TIMEOUT_SECONDS, QUERY_SECONDS = 20.0, 5.0  # of calls to a V-IPU controller, and of those for a query


def reserve(proxy: Proxy, job: str, size: int) -> tuple[int, Any]:
    """Reserve a partition for a job that need not exist."""
    path = f"/v1/jobs/{proxy.cluster.namespace}/{job}/partitions/0"
    return proxy.as_operator("PUT", path, {"uid": job, "size": size, "workers": 1})


def restart(proxy: Proxy, *options: str, controllers: str = "") -> None:
    """Start the proxy again with other options and another list of controllers."""
    proxy.kill()
    if controllers:
        proxy.controllers.write_text(controllers)
    proxy.options = ("--sweep-seconds", "3600", *options)
    proxy.start()


@pytest.fixture
def silent() -> Iterator[int]:
    """Yield a port that accepts connections and never answers, as a stopped controller does."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield server.getsockname()[1]


def test_a_controller_that_does_not_respond_does_not_delay_the_others(proxy: Proxy, silent: int) -> None:
    first = f"127.0.0.1:{silent}"
    restart(proxy, controllers=f"{first}:a=1\n{proxy.vipu.address}:b=2\n")
    until(lambda: "controller does not respond" in proxy.log, 60)
    for number in range(3):
        begun = time.monotonic()
        status, found = reserve(proxy, f"job-{number}", 8)
        assert (status, found["nodeLabel"]) == (200, {"key": "b", "value": "2"})
        assert time.monotonic() - begun < TIMEOUT_SECONDS / 2
    begun = time.monotonic()
    assert proxy.call("POST", "/query", {"size": 8})[1]["numOfPartitions"] == 1
    assert time.monotonic() - begun < QUERY_SECONDS
    until(lambda: proxy.call("GET", "/stats")[1]["total"] == {"used": 24, "available": 8}, 60)
    # The reason of a job that waits names the controller.
    status, answer = reserve(proxy, "large", 32)
    assert (status, answer["reason"]) == (409, "NoCapacity")
    assert f"The V-IPU controller {first} does not respond." in answer["message"]


def test_a_controller_that_responds_again_is_the_first_one_again(
    proxy: Proxy, vipu: Callable[..., InProcess], tmp_path: Path
) -> None:
    second = vipu()
    restart(proxy, controllers=f"{proxy.vipu.address}:a=1\n{second.address}:b=2\n")
    address = proxy.vipu.endpoints[0]
    proxy.vipu.stop()
    until(lambda: "controller does not respond" in proxy.log, 60)
    assert reserve(proxy, "second", 4)[1]["nodeLabel"] == {"key": "b", "value": "2"}
    again = InProcess(tmp_path / "vipu-0.db", InstantLife, user=address)
    try:
        until(lambda: "controller responds again" in proxy.log, 60)
        assert reserve(proxy, "first", 4)[1]["nodeLabel"] == {"key": "a", "value": "1"}
        assert listed(again) == {f"p-first-{proxy.cluster.namespace}-0"}
    finally:
        again.stop()


def test_partitions_are_in_the_given_cluster(proxy: Proxy) -> None:
    agents = [admin.AgentSpec(id=f"other{number}", host=f"127.2.2.{number}") for number in range(1, 5)]
    cluster = admin.ClusterSpec(id="cl1", agent_ids=[each.id for each in agents], ipu_link_topology=2)
    allocation = admin.AllocationSpec(id="b1", cluster_id="cl1", size=4)
    reply = proxy.vipu.admin.Apply(admin.ApplyRequest(agents=agents, clusters=[cluster], allocations=[allocation]))
    assert reply.applied, reply.results
    restart(proxy, "--cluster", "cl1")
    assert reserve(proxy, "job", 8)[0] == 200
    [found] = proxy.vipu.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions
    assert found.spec.cluster_id == "cl1"
    until(lambda: proxy.call("GET", "/stats")[1]["total"] == {"used": 8, "available": 8})
    status, answer = reserve(proxy, "large", 32)  # for which the other cluster has room
    assert (status, answer["reason"]) == (409, "TooLarge")


@pytest.mark.parametrize(("size", "topology", "routing"), [(16, 2, "DNC"), (32, 1, "SWNC"), (32, 2, "RINGSWNC")])
def test_the_routing_of_a_partition(proxy: Proxy, tmp_path: Path, size: int, topology: int, routing: str) -> None:
    """Topology 1 is a mesh, 2 a torus. A partition with all IPUs of a torus is a ring."""
    server = InProcess(tmp_path / "other.db", InstantLife)
    try:
        pod(server, 8, ipu_link_topology=topology)
        restart(proxy, controllers=f"{server.address}\n")
        for _ in range(2):  # the second answer is that of the existing partition
            status, found = reserve(proxy, "job", size)
            assert (status, found["routing"]) == (200, routing)
    finally:
        server.stop()


@dataclass(frozen=True)
class Secure:
    """A controller with TLS and access keys. ``key``: that of user ``kubernetes``, who may use allocation a1."""

    server: InProcess
    certificates: Path
    key: str
    root: list[tuple[str, str]]  # metadata of calls of the administrator

    def partitions(self) -> set[str]:
        reply = self.server.user.ListPartitions(virmgrpc.ListPartitionsRequest(), metadata=self.root, timeout=10)
        return {each.id for each in reply.partitions}


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Secure]:
    """Yield a controller with 16 IPUs that belong to user ``kubernetes``."""
    certificates = tmp_path / "certificates"
    issue.create(certificates, ["127.0.0.1"])
    ca, client = (certificates / "server" / load.CA).read_bytes(), certificates / "client"
    channel = grpc.ssl_channel_credentials(
        ca, (client / "client.key").read_bytes(), (client / "client.crt").read_bytes()
    )
    settings = {"credentials": load.server_credentials(certificates), "shared_certificates": True}
    server = InProcess(tmp_path / "secure.db", InstantLife, channel, **settings)
    administrator, key = auth.new_user("root", Role.ADMIN, (), shared_certificate=True)
    server.server.controller.submit(lambda state: ([Put(administrator)], None)).result(10)
    root = [(USER_ID_METADATA, "root"), (ACCESS_KEY_METADATA, key)]
    agents = [admin.AgentSpec(id=f"ag{number}", host=f"127.2.3.{number}") for number in range(1, 5)]
    request = admin.ApplyRequest(
        agents=agents,
        clusters=[admin.ClusterSpec(id="cl0", agent_ids=[each.id for each in agents])],
        allocations=[admin.AllocationSpec(id="a1", cluster_id="cl0", size=4)],
        users=[admin.UserSpec(id="kubernetes", allocation_ids=["a1"])],
    )
    reply = server.admin.Apply(request, metadata=root, timeout=10)
    yield Secure(server, certificates, reply.access_keys["kubernetes"], root)
    server.stop()


def test_a_controller_with_tls_and_access_keys(proxy: Proxy, secure: Secure) -> None:
    address = secure.server.address
    folder = proxy.folder / "credentials" / address.replace(":", "_")
    folder.mkdir(parents=True)
    files = {"ca.crt": "server/ca.crt", "tls.crt": "client/client.crt", "tls.key": "client/client.key"}
    for name, source in files.items():
        shutil.copy(secure.certificates / source, folder / name)
    (folder / "user-id").write_text("kubernetes\n")
    (folder / "access-key").write_text("wrong\n")
    restart(proxy, controllers=f"{address}:a=1\n{proxy.vipu.address}:b=2\n")
    assert reserve(proxy, "first", 4)[1]["nodeLabel"] == {"key": "b", "value": "2"}
    (folder / "access-key").write_text(f"{secure.key}\n")  # as kubelet renews a Secret
    until(lambda: "controllers read again" in proxy.log, 40)
    until(lambda: proxy.call("GET", "/stats")[1]["total"] == {"used": 4, "available": 28 + 16}, 40)
    assert reserve(proxy, "second", 4)[1]["nodeLabel"] == {"key": "a", "value": "1"}
    assert secure.partitions() == {f"p-second-{proxy.cluster.namespace}-0"}
    assert secure.key not in proxy.log
