# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers of the recording of the dashboards. Each has a controller and a node of etcd."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import yaml

from tests import ROOT
from tests.ha.controllers import Controllers, listed
from tests.ha.etcd_nodes import EtcdCluster, Node
from tests.peers.exporters import HOST
from tests.waiting import until

TWIN = ROOT / "inventory/twin"
# Addresses in the management network, which the POD model derives.
SERVERS = {"server1": "127.3.1.101", "server2": "127.3.1.102", "server3": "127.3.1.103"}
SECONDS = 60


class Servers:
    """Controllers on three servers, with their records in etcd on the same servers."""

    def __init__(self, etcd: EtcdCluster, controllers: Controllers) -> None:
        self._etcd, self._controllers = etcd, controllers
        self._lost = controllers.wait_leader()
        etcd.move_leader(self._node())

    def _node(self) -> Node:
        """Return the node of etcd on the server that is lost."""
        return next(node for node in self._etcd.nodes if node.host == self._lost.host)

    def lose(self) -> None:
        """Kill the leader of the controllers and the node of etcd on its server, which leads too."""
        self._lost.kill()
        self._node().kill()
        self._controllers.wait_leader(SECONDS)

    def restore(self) -> None:
        """Start the killed processes."""
        self._etcd.start(self._node())
        self._lost.start()
        until(self._lost.follows, SECONDS, self._controllers.logs)

    def call(self) -> None:
        """List the partitions, as a client does. Without a leader, there is no call."""
        leader = self._controllers.leader()
        if leader is not None:
            with suppress(grpc.RpcError):
                listed(leader.address)

    @property
    def addresses(self) -> str:
        """Addresses of the controllers, as the command lines accept them."""
        return ",".join(self._controllers.addresses)

    @property
    def endpoints(self) -> dict[str, Any]:
        """Addresses and port of the controllers, for the POD model."""
        return {"host": list(SERVERS.values()), "port": self._controllers.all[0].port}

    def variables(self) -> dict[str, dict[str, Any]]:
        """Return the variables of each server for the role `monitoring`."""
        return {
            server: {
                "etcd_hosts": list(SERVERS),
                "etcd_metrics_port": node.client_port,
                "vipu_server_store": self._controllers.store,
                "vipu_server_metrics_host": HOST,
                "vipu_server_metrics_port": controller.metrics_port,
            }
            for server, node, controller in zip(SERVERS, self._etcd.nodes, self._controllers.all, strict=True)
        }


@contextmanager
def running_servers(folder: Path) -> Iterator[Servers]:
    """Run the servers until the end of the block."""
    hosts = list(SERVERS.values())
    etcd = EtcdCluster(folder / "etcd", hosts=hosts)
    try:
        controllers = Controllers(folder, etcd.url, hosts=hosts)
        try:
            yield Servers(etcd, controllers)
        finally:
            controllers.close()
    finally:
        etcd.stop()


def write_inventory(target: Path, servers: Servers | None = None) -> Path:
    """Write the inventory of the twin with three servers, and their controllers. Return its POD model.

    Without ``servers``, the model has the controller of the twin.
    """
    (target / "host_vars").mkdir(parents=True)
    for name in ("group_vars", "machines.csv"):
        (target / name).symlink_to(TWIN / name)
    model = yaml.safe_load((TWIN / "pod.yml").read_text())
    model["racks"][0]["servers"] = [{"name": name, "roles": ["controller", "poplar"]} for name in SERVERS]
    if servers:
        model["controller"] = servers.endpoints
        for name, variables in servers.variables().items():
            (target / f"host_vars/{name}.yml").write_text(yaml.safe_dump(variables))
    (target / "pod.yml").write_text(yaml.safe_dump(model, sort_keys=False))
    return target / "pod.yml"
