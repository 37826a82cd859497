# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of the fault tests separates two nodes of etcd, and joins them again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from aetcd import rpc

from tests.ha.etcd_nodes import EtcdCluster, Node
from tests.waiting import until


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EtcdCluster]:
    made = EtcdCluster(tmp_path / "etcd", separable=True)
    yield made
    made.stop()


def put(node: Node, value: bytes) -> None:
    with grpc.insecure_channel(node.address) as channel:
        rpc.KVStub(channel).Put(rpc.PutRequest(key=b"k", value=value), timeout=10)


def local(node: Node) -> bytes:
    """Return the value that a node has stored itself."""
    with grpc.insecure_channel(node.address) as channel:
        found = rpc.KVStub(channel).Range(rpc.RangeRequest(key=b"k", serializable=True), timeout=10).kvs
    return bytes(found[0].value) if found else b""


def leader(cluster: EtcdCluster, among: list[Node]) -> Node | None:
    """Return the node that the nodes ``among`` follow, if they agree."""
    found = {(status.leader, status.raftTerm) for status in map(cluster.status, among)}
    (first, *more) = found
    if more or not first[0]:
        return None
    return next((each for each in cluster.nodes if cluster.status(each).header.member_id == first[0]), None)


def test_only_two_nodes_are_separated(cluster: EtcdCluster) -> None:
    first = until(lambda: leader(cluster, cluster.nodes), 30, "all nodes follow one")
    lonely, third = (node for node in cluster.nodes if node is not first)
    put(first, b"1")
    until(lambda: local(lonely) == b"1", 20, "the follower has the value")
    assert cluster.network is not None
    cluster.network.separate(cluster.nodes.index(first), cluster.nodes.index(lonely))
    until(lambda: not lonely.responds(), 20, "the follower has no leader")
    until(third.responds, 20, "the other one still has a leader")
    put(third, b"2")
    assert local(lonely) == b"1"
    cluster.network.join()
    until(lambda: local(lonely) == b"2", 30, "the follower has received what it missed")
    until(lambda: all(map(Node.responds, cluster.nodes)), 30, "all nodes have a leader")
