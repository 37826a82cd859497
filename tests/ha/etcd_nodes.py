# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster of etcd nodes on loopback, whose processes can be killed and paused."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from aetcd import rpc

from tests.ha.peer_network import PeerNetwork
from tests.ports import free_port
from tests.waiting import until


class Node:
    """One node of etcd."""

    def __init__(self, name: str, folder: Path, host: str) -> None:
        self.name = name
        self.folder = folder
        self.host = host
        self.client_port, self.peer_port = free_port(host), free_port(host)
        self.peer_url = f"http://{host}:{self.peer_port}"  # for the other nodes
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Address for clients."""
        return f"{self.host}:{self.client_port}"

    def start(self, cluster: str, *options: str) -> None:
        client = f"http://{self.address}"
        with (self.folder.parent / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    "etcd",
                    *("--name", self.name),
                    *("--data-dir", str(self.folder)),
                    *("--listen-client-urls", client),
                    *("--advertise-client-urls", client),
                    *("--listen-peer-urls", f"http://{self.host}:{self.peer_port}"),
                    *("--initial-advertise-peer-urls", self.peer_url),
                    *("--initial-cluster", cluster),
                    *("--auto-compaction-mode", "revision", "--auto-compaction-retention", "1000000"),
                    *options,
                ],
                stdout=log,
                stderr=log,
            )

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End the process at once, even a paused one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def responds(self) -> bool:
        """Return whether the node has a leader and reads from it."""
        with grpc.insecure_channel(self.address) as channel:
            try:
                rpc.KVStub(channel).Range(rpc.RangeRequest(key=b"x"), timeout=1)
            except grpc.RpcError:
                return False
        return True


class EtcdCluster:
    """Nodes of one cluster, all running after the start."""

    def __init__(
        self, folder: Path, size: int = 3, *options: str, separable: bool = False, hosts: Sequence[str] = ()
    ) -> None:
        """Start the nodes with further ``options``, and wait until each of them responds.

        ``separable``: with relays between the nodes, which ``network`` cuts. ``hosts``: one address per node. Without
        them, all nodes have the same.
        """
        assert shutil.which("etcd"), "etcd is not installed: apt install etcd-server"
        folder.mkdir(parents=True, exist_ok=True)
        self.nodes = [
            Node(f"n{number}", folder / f"n{number}", host) for number, host in enumerate(hosts or ["127.0.0.1"] * size)
        ]
        self.network: PeerNetwork | None = None
        if separable:
            self.network = PeerNetwork([f"{node.host}:{node.peer_port}" for node in self.nodes])
            for node, port in zip(self.nodes, self.network.ports, strict=True):
                node.peer_url = f"http://127.0.0.1:{port}"
        self._cluster = ",".join(f"{node.name}={node.peer_url}" for node in self.nodes)
        self._options = options
        try:
            for node in self.nodes:
                self.start(node)
            self.wait()
            if self.network is not None:
                for member in self._members():
                    number = next(number for number, node in enumerate(self.nodes) if node.name == member.name)
                    self.network.name(member.ID, number)
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """Value of --store."""
        return "etcd://" + ",".join(node.address for node in self.nodes)

    def start(self, node: Node) -> None:
        """Start a node that was killed."""
        node.start(self._cluster, *self._options)

    def wait(self) -> None:
        """Wait until all nodes respond."""
        until(lambda: all(node.responds() for node in self.nodes), 60, "etcd has a leader")

    def stop(self) -> None:
        """End all nodes."""
        for node in self.nodes:
            node.kill()
        if self.network is not None:
            self.network.close()

    def status(self, node: Node) -> Any:
        """Return the status of a node: its raft term, and the member ids of itself and its leader."""
        with grpc.insecure_channel(node.address) as channel:
            return rpc.MaintenanceStub(channel).Status(rpc.StatusRequest(), timeout=5)

    def leads(self, node: Node) -> bool:
        """Return whether a node is the leader of etcd."""
        status = self.status(node)
        return bool(status.leader == status.header.member_id)

    def move_leader(self, node: Node) -> None:
        """Make a node the leader of etcd."""
        leader = next(each for each in self.nodes if self.leads(each))
        if leader is not node:
            request = rpc.MoveLeaderRequest(targetID=self.status(node).header.member_id)
            with grpc.insecure_channel(leader.address) as channel:
                rpc.MaintenanceStub(channel).MoveLeader(request, timeout=10)

    def states(self) -> str:
        """Return what each node reports, for the message of a failed test, and the ends of the logs."""
        lines = []
        for node in self.nodes:
            try:
                status = self.status(node)
                role = {0: "no leader", status.header.member_id: "leads"}.get(status.leader, "follows")
                lines.append(f"{node.name}: {role}, term {status.raftTerm}, index {status.raftIndex}")
            except grpc.RpcError as error:
                lines.append(f"{node.name}: {error.code().name}")
            log = node.folder.parent / f"{node.name}.log"
            lines += [f"  {line}" for line in log.read_text(errors="replace").splitlines()[-8:]]
        return "\n".join(lines)

    def _members(self) -> Sequence[Any]:
        with grpc.insecure_channel(self.nodes[0].address) as channel:
            return rpc.ClusterStub(channel).MemberList(rpc.MemberListRequest(), timeout=10).members
