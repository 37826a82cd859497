# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module openstack_pod_network_info: objects of a POD, and access of its tenants."""

from __future__ import annotations

import typing as t

from ...reconcile import Family, Object
from ...runner import Task, TaskError
from ..common.client import Cloud
from ..common.lookup import missing_project, project_id
from ..common.options import AUTH_OPTIONS, OPENSTACK, Run, open_cloud
from .families import COLLECTIONS, FAMILIES, INTERFACE, NETWORK, PATHS, PORT, ROUTER, SECURITY_GROUP, SUBNET
from .file_shares import find_share_leaks
from .parse import Raw
from .query import Query
from .reach import Tenant, find_leaks, port_addresses, reachable_networks
from .reads import fetch, fetch_all_projects, fetch_file_shares, fetch_ports, has_file_shares

_FINDINGS_IN_MESSAGE = 3


def _collect(run: Run) -> Object:
    params = run.params
    result: Object = {"changed": False}
    if params["pod"]:
        result.update(_owned_objects(run.transport, params["pod"]))
    tenants = params["tenants"] or []
    if tenants:
        with_shares = has_file_shares(run.transport)
        raw = fetch_all_projects(run.transport, with_subnets=with_shares)
        ids = {options["project"]: _required_project(run, options["project"]) for options in tenants}
        shares = _file_shares(run.transport, list(ids.values())) if with_shares else []
        result["tenants"] = [_check_tenant(run, options, raw, shares, ids) for options in tenants]
    findings = [finding for tenant in result.get("tenants", ()) for finding in tenant["findings"]]
    result.update(findings=findings, ok=not findings if tenants else None)
    if findings and params["fail_on_findings"]:
        reasons = [finding["reason"] for finding in findings[:_FINDINGS_IN_MESSAGE]]
        if len(findings) > len(reasons):
            reasons.append("The result lists %d more findings." % (len(findings) - len(reasons)))
        raise TaskError(" ".join(reasons), **result)
    return result


def _owned_objects(cloud: Cloud, owner: str) -> Object:
    """Return the objects with the tag of the POD, in the format of the option ``config``, with ids."""
    state = fetch(cloud, Query(owner, PATHS, all_projects=True))
    result: Object = {}
    for family in FAMILIES:
        items = []
        for item in state.objects[family.kind]:
            if item.get("owner") == owner:
                fields = {name: value for name, value in item.items() if name not in ("owner", "uuid", "subnet_uuid")}
                items.append({**fields, "id": item["uuid"]})
        result[family.plural] = items
    for router in result[ROUTER.plural]:
        own = [item for item in result[INTERFACE.plural] if item["router"] == router["name"]]
        router["interfaces"] = [{"subnet": item["subnet"], "address": item["address"]} for item in own]
    del result[INTERFACE.plural]
    return result


def _file_shares(cloud: Cloud, projects: list[str]) -> list[Object]:
    own = cloud.authorize()
    return fetch_file_shares(cloud, next((id for id in projects if id != own), own))


def _collections(cloud: Cloud, families: t.Iterable[Family]) -> dict[str, list[Object]]:
    kinds = [family.kind for family in families]
    found = cloud.map(lambda kind: cloud.list("network", PATHS[kind], COLLECTIONS[kind]), kinds)
    return dict(zip(kinds, found, strict=True))


def _required_project(run: Run, name: str) -> str:
    """Return the id of a project. Raises TaskError."""
    id = project_id(run.transport, name)
    if id is None:
        remedy = "Correct the name, or omit the tenant."
        raise TaskError(missing_project(name, remedy))
    return id


def _check_tenant(run: Run, options: Object, raw: Raw, shares: list[Object], ids: t.Mapping[str, str]) -> Object:
    """Return the networks that a tenant reaches and sees, with findings. ``ids`` are those of the projects by name.

    ``shares`` are shared file systems. Without them, ``raw`` needs no subnets.
    """
    id = ids[options["project"]]
    networks, common = (frozenset(options[name] or ()) for name in ("networks", "common_networks"))
    tenant = Tenant(options["project"], id, run.transport.authorize(), networks, common)
    reachable = reachable_networks(raw, id)
    visible = _visible_objects(run, options, tenant) if options["cloud"] or options["auth"] else None
    names = {net["id"]: net["name"] for net in raw[NETWORK.kind] if net["id"] in reachable.all}
    ports = fetch_ports(run.transport, sorted(names))
    projects = {id: name for name, id in ids.items()}
    findings = find_leaks(tenant, raw, reachable, visible, projects)
    if shares:
        findings += find_share_leaks(tenant, raw, reachable, shares, projects)
    result: Object = {
        "project": options["project"],
        "reachable": {
            "networks": sorted(names.values()),
            "ports": port_addresses(ports, names),
        },
        "findings": findings,
    }
    if visible is not None:
        visible_names = {net["id"]: net["name"] for net in visible[NETWORK.kind]}
        result["visible"] = {
            "networks": sorted(visible_names.values()),
            "subnets": sorted(subnet["name"] for subnet in visible[SUBNET.kind]),
            "ports": port_addresses(visible[PORT.kind], visible_names),
            "security_groups": sorted(group["name"] for group in visible[SECURITY_GROUP.kind]),
        }
    return result


def _visible_objects(run: Run, options: Object, tenant: Tenant) -> Raw:
    """Read the objects that Neutron returns with the tenant's own credentials."""
    cloud = open_cloud({**run.params, "cloud": options["cloud"], "auth": options["auth"]})
    try:
        if cloud.authorize() != tenant.id:
            raise TaskError(
                "Cannot use the credentials of tenant '%s': they are for another project. Correct cloud or auth."
                % tenant.project
            )
        return _collections(cloud, (NETWORK, SUBNET, PORT, SECURITY_GROUP))
    finally:
        cloud.close()


OPENSTACK_POD_NETWORK_INFO = Task(
    OPENSTACK,
    {
        "pod": {"type": "str"},
        "tenants": {
            "type": "list",
            "elements": "dict",
            "options": {
                "project": {"type": "str", "required": True},
                "networks": {"type": "list", "elements": "str", "required": True},
                "common_networks": {"type": "list", "elements": "str"},
                "cloud": {"type": "str"},
                "auth": {"type": "dict", "options": AUTH_OPTIONS},
            },
            "mutually_exclusive": [("cloud", "auth")],
        },
        "fail_on_findings": {"type": "bool", "default": False},
    },
    _collect,
    {"required_one_of": [("pod", "tenants")]},
)
