# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of a cloud and a controller to the tasks of the role vpod. The actions of the collection call ``perform``.

Each call is recorded with its validated options.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import empty_result

Params = dict[str, Any]
CALLS = "VPOD_CALLS"  # variable with the path of the record

# Addresses of new ports. Neutron selects the first free one of each pool, after that of its DHCP server.
ADDRESSES = {
    "pod64-control": ["10.4.0.151", "10.4.0.152"],
    "pod64-bmc-gw": ["10.1.1.151", "10.1.2.151"],
    "pod64-data": ["10.1.5.151"],
    "pod64-storage": ["10.1.6.151"],
}
DHCP_ADDRESS = "10.4.0.2"  # of the DHCP server in the control network
EXPORT = "10.1.6.9:/shares/v1"
IPUOF = '{"partition": "v1"}\n'
AGENTS = ("ag01", "ag02")  # of ipum01 and ipum02


class Calls:
    """Recorded calls, in order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.all: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def add(self, module: str, params: Params, check: bool) -> None:
        """Record a call."""
        self.all.append({"module": module, "params": params, "check": check})
        with self._path.open("a") as file:
            file.write(json.dumps(self.all[-1]) + "\n")

    def written(self, module: str) -> list[Params]:
        """Return the options of the calls that changed something."""
        return [call["params"] for call in self.all if call["module"] == module and not call["check"]]

    def ports(self) -> dict[str, dict[str, Any]]:
        """Return the created ports by name, each with ``mac`` and ``addresses``."""
        found: dict[str, dict[str, Any]] = {}
        requested = [port for call in self.written("openstack_pod_network") for port in call["config"]["ports"] or ()]
        for call in self.written("openstack_pod_server"):
            for server in call["servers"]:
                requested += [{**port, "name": f"{server['name']}-{port['name']}"} for port in server["networks"]]
        for port in requested:
            if port["name"] not in found:
                free = [address for address in ADDRESSES[port["network"]] if address not in _used(found)]
                count = len(port["subnets"] or ()) or 1
                mac = f"fa:16:3e:00:00:{len(found) + 1:02x}"
                found[port["name"]] = {**port, "mac": mac, "addresses": port["addresses"] or free[:count]}
        return found


def _used(ports: dict[str, dict[str, Any]]) -> set[str]:
    return {address for port in ports.values() for address in port["addresses"]}


def perform(action: Any) -> dict[str, Any]:
    """Return the result of a task, in place of the method of its action."""
    task, module = action.task, action._task.action.rpartition(".")[2]
    args = json.loads(json.dumps(action._task.args, default=str))
    checked = ArgumentSpecValidator(task.argument_spec, **task.constraints).validate(args)
    if checked.error_messages:
        return {"failed": True, "msg": checked.errors.msg}
    calls, check = Calls(Path(os.environ[CALLS])), bool(action._task.check_mode)
    params = {name: value for name, value in checked.validated_parameters.items() if value is not None}
    calls.add(module, params, check)
    result = _RESULTS[module](params, calls, check)
    return {"changed": not check and not module.endswith("_info"), **result}


def _tenant(params: Params, calls: Calls, check: bool) -> dict[str, Any]:
    tags = {**empty_result(), "created": [] if check else [params["pod"]]}
    return {
        "tags": tags,
        "other_pods": [],
        "other_projects": [],
        "other_vipu_users": [],
        "ids": {"projects": {params["project"]: "id-of-project"}},
    }


def _network(params: Params, calls: Calls, check: bool) -> dict[str, Any]:
    return {"shares": empty_result(), "ports": empty_result(), "ids": {}}


def _network_info(params: Params, calls: Calls, check: bool) -> dict[str, Any]:
    if tenants := params.get("tenants"):
        used = [{"network": "pod64-control", "name": "", "addresses": [DHCP_ADDRESS]}]
        found = [{"project": tenant["project"], "reachable": {"ports": used}} for tenant in tenants]
        return {"tenants": found, "findings": [], "ok": True}
    own = [port for port in calls.ports().values() if port["name"].startswith(f"{params['pod']}-")]
    return {"ports": own, "shares": [{"kind": "network", "name": "pod64-control", "project": "research"}]}


def _server(params: Params, calls: Calls, check: bool) -> dict[str, Any]:
    names = [server["name"] for server in params["servers"]]
    made = [f"{server['name']}-{port['name']}" for server in params["servers"] for port in server["networks"]]
    ports = calls.ports()
    details = {
        server["name"]: {
            "id": f"id-of-{server['name']}",
            "status": "ACTIVE",
            "addresses": {
                port["network"]: ports[f"{server['name']}-{port['name']}"]["addresses"] for port in server["networks"]
            },
        }
        for server in ([] if check else params["servers"])
    }
    created = {"servers": {**empty_result(), "created": names}, "ports": {**empty_result(), "created": made}}
    return {**created, "details": details, "ids": {}}


def _share(params: Params, calls: Calls, check: bool) -> dict[str, Any]:
    names = [share["name"] for share in params["shares"]]
    details = {name: {"id": f"id-of-{name}", "status": "available", "exports": [EXPORT]} for name in names}
    return {"shares": {**empty_result(), "created": names}, "details": details, "ids": {}}


def _vipu_info(params: Params, calls: Calls, check: bool) -> dict[str, Any]:
    allocations = [{"id": each["id"], "agents": list(AGENTS)} for each in calls.written("vipu_allocation")]
    return {"allocations": allocations, "partitions": [], "users": [], "secure": True}


def _ipuof_config(params: Params, calls: Calls, check: bool) -> dict[str, Any]:
    Path(params["dest"]).write_text(IPUOF)
    return {}


def _nothing(params: Params, calls: Calls, check: bool) -> dict[str, Any]:
    return {}


_RESULTS: dict[str, Callable[[Params, Calls, bool], dict[str, Any]]] = {
    "openstack_pod_tenant": _tenant,
    "openstack_pod_network": _network,
    "openstack_pod_network_info": _network_info,
    "openstack_pod_server": _server,
    "openstack_pod_share": _share,
    "vipu_info": _vipu_info,
    "vipu_allocation": _nothing,
    "vipu_partition": _nothing,
    "vipu_ipuof_config": _ipuof_config,
}
