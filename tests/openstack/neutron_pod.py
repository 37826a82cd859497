# SPDX-License-Identifier: GPL-3.0-or-later
"""POD of a few machines for a real Neutron, runs of the modules, and the requests that Neutron received."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.info_task import (
    OPENSTACK_POD_NETWORK_INFO,
)
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.options import CONFIG_OPTIONS
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.task import OPENSTACK_POD_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.openstack_networks import network_config
from openstack.connection import Connection

LISTS = ("networks", "subnets", "security_groups", "ports", "routers", "router_interfaces", "shares")


def run(check: bool = False, diff: bool = False, task: Any = OPENSTACK_POD_NETWORK, **options: Any) -> dict[str, Any]:
    """Run a module with these options and return its result; ``prune`` may be True for all kinds."""
    if options.get("prune") in (True, False):
        options["prune"] = list(CONFIG_OPTIONS) if options["prune"] else []
    checked = ArgumentSpecValidator(task.argument_spec, **task.constraints).validate(options)
    assert not checked.error_messages, checked.error_messages
    return task.perform(checked.validated_parameters, check, diff)


def result_keys(result: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return the keys in a result by kind and verb, without empty lists."""
    found = {name: {verb: keys for verb, keys in result[name].items() if keys} for name in LISTS if name in result}
    return {name: verbs for name, verbs in found.items() if verbs}


@dataclass
class AccessLog:
    """Access log of Neutron."""

    file: Path

    @contextmanager
    def requests(self) -> Iterator[list[str]]:
        """Collect the requests of the block, each with its method first."""
        with self.file.open() as stream:
            stream.seek(0, 2)
            found: list[str] = []
            yield found
            found += [line.split('"')[1] for line in stream if '"' in line]

    @contextmanager
    def no_writes(self) -> Iterator[None]:
        """Fail when the block sends write requests to Neutron."""
        with self.requests() as found:
            yield
        assert not [line for line in found if not line.startswith("GET ")], found
        assert found, "Neutron received no requests"


@dataclass
class Plan:
    """POD in files, with VLANs that no other test uses."""

    folder: Path
    vlan: int
    external: str
    machines: int = 4
    tenants: list[dict[str, Any]] = field(default_factory=lambda: [{"project": "tenant-a"}])

    def __post_init__(self) -> None:
        self.name = f"t{uuid.uuid4().hex[:6]}"

    def options(self) -> dict[str, Any]:
        """Return the options of the module, from pod.yml and machines.csv."""
        pod = {
            "plugin": "openipu.pod.pod",
            "name": self.name,
            "networks": {
                "bmc": {"vlan": self.vlan, "subnet": "10.1.1.0/24"},
                "gw": {"vlan": self.vlan, "subnet": "10.1.2.0/24"},
                "management": {"vlan": self.vlan + 1, "subnet": "10.1.3.0/24"},
                "data": {"vlan": self.vlan + 2, "subnet": "10.1.5.0/24"},
                "storage": {"vlan": self.vlan + 3, "subnet": "10.1.6.0/24"},
            },
            "racks": [{"name": "rack1", "number": 1, "servers": [{"name": "server1", "roles": ["controller"]}]}],
            "clusters": [{"id": "cl", "racks": ["rack1"]}],
            "allocations": [
                {"id": "upper", "cluster": "cl", "machines": [self.machine(n) for n in self.upper_half()]},
                {"id": "third", "cluster": "cl", "machines": [self.machine(1)]},
            ],
            "openstack": {
                "dns_domain": f"{self.name}.example",
                "dns_servers": ["10.1.2.101"],
                "management_servers": ["192.0.2.7"],
                "nfs_servers": ["10.1.6.9"],
                "external_network": self.external,
                "tenants": self.tenants,
            },
        }
        (self.folder / "pod.yml").write_text(yaml.safe_dump(pod))
        rows = [
            f"{self.machine(n)},{n}," + ",".join(self.mac(n, kind) for kind in ("bmc", "gw", "rnic"))
            for n in range(1, self.machines + 1)
        ]
        (self.folder / "machines.csv").write_text("name,unit,bmc_mac,gw_mac,rnic_mac\n" + "\n".join(rows) + "\n")
        model = load(str(self.folder / "pod.yml"))
        assert model.cloud is not None
        return {"pod": self.name, "config": network_config(model, model.cloud)}

    def upper_half(self) -> range:
        return range(self.machines // 2 + 1, self.machines + 1)

    @staticmethod
    def machine(number: int) -> str:
        return f"ipum{number:02}"

    @staticmethod
    def mac(number: int, kind: str) -> str:
        return f"0c:42:a1:00:0{('bmc', 'gw', 'rnic').index(kind)}:{number:02x}"

    def network(self, admin: Connection, name: str) -> Any:
        return admin.network.find_network(f"{self.name}-{name}", ignore_missing=False)

    def ports(self, admin: Connection) -> dict[str, Any]:
        """Return the ports of the POD by name, read by the SDK."""
        networks = [net.id for net in admin.network.networks() if net.name.startswith(self.name)]
        found = [port for id in networks for port in admin.network.ports(network_id=id)]
        return {port.name: port for port in found if not port.device_owner.startswith("network:")}


def info(task: Any = OPENSTACK_POD_NETWORK_INFO, **options: Any) -> dict[str, Any]:
    """Run the info module and return its result."""
    return run(task=task, **options)
