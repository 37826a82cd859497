# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module openstack_pod_server: ports first, then servers; the reverse for removals."""

from __future__ import annotations

from dataclasses import replace

from ...reconcile import Object, empty_result
from ...runner import Task, TaskError
from ..common.apply_plan import Plan, apply_plans
from ..common.lookup import missing_project, project_id
from ..common.options import OPENSTACK, Run
from ..common.steps import check_writable
from ..network.api import NetworkWriter
from ..network.cloud_limits import CloudLimits
from ..network.families import NETWORK, PORT, SECURITY_GROUP, SUBNET
from ..network.offload import supported_ports
from ..network.parse import NetworkState
from ..network.query import Query, group_names
from ..network.reads import fetch as fetch_network
from .api import Names, ServerWriter, fetch
from .families import OPTIONS, SERVER, desired, desired_ports
from .limits import check_server_quotas
from .plan import (
    Servers,
    check_attachable,
    check_desired_ports,
    check_startable,
    plan_port_removal,
    plan_ports,
    plan_server_removal,
    plan_servers,
)

_FAMILIES = (PORT, SERVER)


def _apply(run: Run) -> Object:
    params, cloud = run.params, run.transport
    absent = params["state"] == "absent"
    recreate = params["recreate"] and not absent
    items = desired(params)
    if not absent:
        items = _supported(run, items)
        check_desired_ports(items, params["pod"])
    project = _project(run)
    if project is None:
        return {"changed": False, "ids": {}, **{family.plural: empty_result() for family in _FAMILIES}}
    names = Names(cloud, project)
    actual: list[Object] = []
    rejected: set[tuple[str, str]] = set()

    def make_plans() -> list[Plan]:
        nonlocal actual
        actual = fetch(cloud, items, names, project, recreate)
        servers = Servers(params["pod"], items, actual)
        server_steps = plan_server_removal(servers) if absent else plan_servers(servers, recreate)
        state = replace(_network_state(run, items, project), rejected_addresses=rejected)
        limits = CloudLimits(cloud, project)
        port_steps = plan_port_removal(servers, state) if absent else plan_ports(servers, state, limits)
        check_attachable(port_steps, server_steps)
        if not run.check_mode and project != cloud.authorize():
            check_writable([*port_steps, *server_steps], params["project"])
        if not (run.check_mode and params["predict_missing"]):
            check_startable(server_steps, names.ids)
        if not absent:
            check_server_quotas(server_steps, cloud, names.known_flavor, project, params["project"] or project)
        port_writer = NetworkWriter(cloud, state, params["pod"])
        server_writer = ServerWriter(
            cloud, names, params["pod"], params["wait_timeout"], lambda name: port_writer.id(PORT, name)
        )
        plans: list[Plan] = [(port_steps, port_writer), (server_steps, server_writer)]
        return plans[::-1] if absent else plans

    def details() -> Object:
        found = actual if run.check_mode else fetch(cloud, items, names, project, recreate=False)
        return {"details": {item["name"]: _details(item) for item in found}}

    return apply_plans(run, make_plans, _FAMILIES, None if absent else details)


def _supported(run: Run, items: list[Object]) -> list[Object]:
    """Return the servers. Their ports keep the offload type unless this cloud neither stores nor needs it."""
    limits = CloudLimits(run.transport, "")
    return [
        {**item, "networks": supported_ports(item["networks"], run.transport, limits)} if item.get("networks") else item
        for item in items
    ]


def _project(run: Run) -> str | None:
    """Return the id of the project; None when the servers of a missing project are to be removed."""
    name, own = run.params["project"], run.transport.authorize()
    id = project_id(run.transport, name) if name else own
    if id is None and run.params["state"] == "present":
        raise TaskError(missing_project(name))
    return id


def _network_state(run: Run, items: list[Object], project: str) -> NetworkState:
    config = {"ports": desired_ports(items)}
    kinds = [family.kind for family in (NETWORK, SUBNET, PORT, SECURITY_GROUP)]
    networks = {item["network"] for item in config["ports"]}
    query = Query(run.params["pod"], kinds, networks, group_names(config), project=project)
    return fetch_network(run.transport, query)


def _details(server: Object) -> Object:
    return {"id": server["uuid"], "status": server["status"], "addresses": server["addresses"]}


OPENSTACK_POD_SERVER = Task(
    OPENSTACK,
    {
        **OPTIONS,
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "recreate": {"type": "bool", "default": False},
        "predict_missing": {"type": "bool", "default": True},
        "wait_timeout": {"type": "float", "default": 300.0},
    },
    _apply,
)
