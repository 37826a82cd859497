# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of writes to etcd: no error claims that nothing was changed when that is not known."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

from openipu.vipu.storage.etcd import keys
from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.etcd.election import Leadership
from openipu.vipu.storage.etcd.keys import Keys
from openipu.vipu.storage.etcd.writes import GuardedWriter
from openipu.vipu.storage.interface import LeadershipLostError, NotLeaderError, StoreError

Codes = list[grpc.StatusCode]
UNKNOWN, INTERNAL = grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL
DEADLINE, NO_SPACE = grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED


def serve(codes: Codes) -> tuple[grpc.Server, str]:
    """Start a server whose transactions fail with these codes, one after the other. Return its address."""
    left = iter(codes)

    def fail(request: bytes, context: grpc.ServicerContext) -> None:
        context.abort(next(left), "mvcc: database space exceeded")

    server = grpc.server(futures.ThreadPoolExecutor(1))
    method = grpc.unary_unary_rpc_method_handler(fail)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("etcdserverpb.KV", {"Txn": method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"127.0.0.1:{port}"


@pytest.fixture
def failing(request: pytest.FixtureRequest) -> Iterator[GuardedWriter]:
    """A leader whose transactions fail: one list of codes for each node."""
    servers = [serve(codes) for codes in request.param]
    client = EtcdClient(keys.parse(f"etcd://{','.join(address for _, address in servers)}"))
    names = Keys("/test/")
    leadership = Leadership(client, names, {}, 10)
    leadership.token = 1
    writer = GuardedWriter(client, names, leadership, 0)
    yield writer
    writer.close()
    client.close()
    for server, _ in servers:
        server.stop(None)


def write(writer: GuardedWriter) -> Any:
    return writer.commit([(b"/test/records/agent/a", "{}")], {"revision": 1, "total": 0}, 0)


@pytest.mark.parametrize("failing", [[[NO_SPACE]]], indirect=True)
def test_a_rejection_changes_nothing(failing: GuardedWriter) -> None:
    with pytest.raises(StoreError, match="Nothing was changed"):
        write(failing)


@pytest.mark.parametrize(
    "failing",
    [[[UNKNOWN]], [[INTERNAL]], [[DEADLINE, NO_SPACE]], [[DEADLINE], [NO_SPACE]]],
    indirect=True,
    ids=["unknown", "internal", "rejected-later", "rejected-by-another-node"],
)
def test_an_unknown_result_is_reported_as_such(failing: GuardedWriter) -> None:
    with pytest.raises(LeadershipLostError, match="may or may not have been made"):
        write(failing)


@pytest.mark.parametrize("failing", [[[UNKNOWN]]], indirect=True)
def test_a_leader_that_knows_of_its_loss_changes_nothing(failing: GuardedWriter) -> None:
    """Clients repeat the change at the next leader."""
    with pytest.raises(LeadershipLostError):
        write(failing)
    with pytest.raises(NotLeaderError, match="Nothing was changed"):
        write(failing)
