# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of etcd on loopback with the certificates and the settings of the role ``etcd``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aetcd import rpc

from openipu.vipu.storage.etcd.client import EtcdClient, EtcdError
from openipu.vipu.storage.etcd.keys import Location, Tls
from tests import ROOT
from tests.ports import free_port
from tests.unit.collection.pod.inventories import run

ROLE = ROOT / "roles/etcd"
NODES = {f"n{number}": f"127.0.2.{number}" for number in (1, 2, 3)}


class Applied:
    """Files that the role creates for hosts, in a folder, with the connection ``local``. ``nodes``: their addresses."""

    def __init__(self, folder: Path, nodes: Mapping[str, str] = NODES) -> None:
        self.folder = folder
        self._nodes = nodes
        self.authority = folder / "authority"
        self._port, self.metrics_port = free_port(), free_port()
        # On loopback, connections do not come from the address in the certificate.
        skip = {"ETCD_EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION": "true"}
        self._variables = {
            "ansible_python_interpreter": sys.executable,
            "etcd_client_port": self._port,
            "etcd_peer_port": free_port(),
            "etcd_metrics_port": self.metrics_port,
            "etcd_environment": skip,
            "etcd_authority_folder": str(self.authority),
            "ansible_managed": "test",
        }

    def apply(self, **variables: Any) -> int:
        """Create certificates and settings. Return the number of changes of certificates."""
        play: dict[str, Any] = {
            "hosts": "all",
            "connection": "local",
            "gather_facts": False,
            "tasks": [
                {"ansible.builtin.include_role": {"name": str(ROLE), "tasks_from": "authority", "public": True}},
                {
                    "ansible.builtin.template": {
                        "src": str(ROLE / "templates/etcd.env.j2"),
                        "dest": f"{self.folder}/{{{{ inventory_hostname }}}}.env",
                        "mode": "0600",
                    }
                },
            ],
        }
        hosts = {name: {"etcd_address": each, "etcd_metrics_address": each} for name, each in self._nodes.items()}
        inventory, file = self.folder / "hosts.json", self.folder / "play.json"
        inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
        file.write_text(json.dumps([play]))
        values = {**self._variables, **variables}
        done = run("ansible-playbook", "-i", inventory, "-e", json.dumps(values), file)
        assert done.returncode == 0, done.stdout + done.stderr
        return sum(map(int, re.findall(r"changed=(\d+)", done.stdout)))

    def environment(self, node: str) -> dict[str, str]:
        """Return the settings of a node, with the paths of its files in the folder."""
        found = dict(re.findall(r'(?m)^(ETCD_\w+)="(.*)"$', (self.folder / f"{node}.env").read_text()))
        files = {"ca.crt": "ca.crt", "node.crt": f"{node}.crt", "node.key": f"{node}.key"}
        paths = {f"/etc/openipu/etcd/{name}": str(self.authority / file) for name, file in files.items()}
        return {name: paths.get(value, value) for name, value in found.items()} | {
            "ETCD_DATA_DIR": str(self.folder / node)
        }

    def location(self, *files: str) -> Location:
        """Return the cluster, with these files for clients."""
        tls = Tls(self.authority / "ca.crt", *(self.authority / file for file in files))
        return Location(tuple(f"{address}:{self._port}" for address in self._nodes.values()), tls=tls)

    def start(self, node: str) -> subprocess.Popen[bytes]:
        """Start a node. The caller must end it."""
        with (self.folder / f"{node}.log").open("ab") as log:
            environment = {**os.environ, **self.environment(node)}
            return subprocess.Popen(["etcd"], env=environment, stdout=log, stderr=log)


@contextmanager
def running_nodes(folder: Path) -> Iterator[tuple[Applied, dict[str, subprocess.Popen[bytes]]]]:
    """Apply the role and run its nodes until the end of the block. Yield their processes, which may be replaced."""
    made = Applied(folder)
    assert made.apply()
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for node in NODES:
            processes[node] = made.start(node)
        yield made, processes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def can_write(location: Location) -> bool:
    """Return whether a client can write to the cluster."""
    client = EtcdClient(location)
    try:
        client.call("KV", "Put", rpc.PutRequest(key=b"x", value=b"1"))
    except EtcdError:
        return False
    finally:
        client.close()
    return True
