# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module openstack_pod_network_info does: it tells what there is, and asks as the tenants do."""

from __future__ import annotations

from ..reconcile import Object
from ..runner import Task, TaskError
from .client import Cloud
from .looking import look, ports_on, project_id
from .options import AUTH_OPTIONS, OPENSTACK, Run, open_cloud
from .reach import Tenant, addresses, compared, reached
from .reading import ROUTER_PORTS, Raw, Seen, read
from .resources import (
    COLLECTIONS,
    EVERYBODY,
    FAMILIES,
    INTERFACE,
    NETWORK,
    PATHS,
    PORT,
    ROUTER,
    SECURITY_GROUP,
    SHARE,
    SUBNET,
)

_TOLD = 3  # findings that a sentence names
_SHOWN = (NETWORK, SUBNET, PORT, SECURITY_GROUP)


def _info(run: Run) -> Object:
    params = run.params
    result: Object = {"changed": False}
    if params["pod"]:
        result.update(_gathered(run.transport, params["pod"]))
    tenants = params["tenants"] or []
    if tenants:
        raw = _everything(run.transport)
        result["tenants"] = [_tenant(run, asked, raw) for asked in tenants]
    findings = [finding for tenant in result.get("tenants", ()) for finding in tenant["findings"]]
    result.update(findings=findings, ok=not findings if tenants else None)
    if findings and params["fail_on_findings"]:
        more = " And %d more." % (len(findings) - _TOLD) if len(findings) > _TOLD else ""
        raise TaskError(" ".join(finding["reason"] for finding in findings[:_TOLD]) + more, **result)
    return result


def _gathered(cloud: Cloud, owner: str) -> Object:
    """What is tagged as the POD's, in the words of the option config, with ids."""
    seen = look(cloud, PATHS, (), (), owner)
    _name_projects(cloud, seen)
    read(seen, owner)
    result: Object = {}
    for family in FAMILIES:
        items = []
        for item in seen.objects[family.kind]:
            if item.get("owner") == owner:
                told = {name: value for name, value in item.items() if name not in ("owner", "uuid", "subnet_uuid")}
                items.append({**told, "id": item["uuid"]})
        result[family.plural] = items
    for router in result[ROUTER.plural]:
        own = [item for item in result[INTERFACE.plural] if item["router"] == router["name"]]
        router["interfaces"] = [{"subnet": item["subnet"], "address": item["address"]} for item in own]
    del result[INTERFACE.plural]
    return result


def _name_projects(cloud: Cloud, seen: Seen) -> None:
    """Projects that things are shared with by name, for those that Keystone tells about."""
    ids = sorted(
        {policy.get("target_project") or policy["target_tenant"] for policy in seen.raw[SHARE.kind]} - {EVERYBODY}
    )
    if ids:
        names = {raw["id"]: raw["name"] for raw in cloud.list("identity", "/projects", "projects")}
        seen.projects.update((names[id], id) for id in ids if id in names)


def _everything(cloud: Cloud) -> Raw:
    """Networks, routers, shares and the ports of routers of all projects."""
    kinds = [family.kind for family in (NETWORK, ROUTER, SHARE)]
    found = cloud.together(lambda kind: cloud.list("network", PATHS[kind], COLLECTIONS[kind]), kinds)
    raw = dict(zip(kinds, found, strict=True))
    raw[PORT.kind] = cloud.list("network", "/ports", "ports", device_owner=list(ROUTER_PORTS))
    return raw


def _tenant(run: Run, asked: Object, raw: Raw) -> Object:
    id = project_id(run.transport, asked["project"])
    if id is None:
        raise TaskError("There is no project '%s': correct the name, or leave it out." % asked["project"])
    tenant = Tenant(asked["project"], id, frozenset(asked["networks"]))
    reach = reached(raw, id)
    shown = _shown_to(run, asked, tenant) if asked["cloud"] or asked["auth"] else None
    names = {net["id"]: net["name"] for net in raw[NETWORK.kind] if net["id"] in reach.all}
    ports = ports_on(run.transport, sorted(names))
    result: Object = {
        "project": asked["project"],
        "reaches": {
            "networks": sorted(names.values()),
            "ports": addresses(ports, names),
        },
        "findings": compared(tenant, raw, reach, shown),
    }
    if shown is not None:
        called = {net["id"]: net["name"] for net in shown[NETWORK.kind]}
        result["sees"] = {
            "networks": sorted(called.values()),
            "subnets": sorted(subnet["name"] for subnet in shown[SUBNET.kind]),
            "ports": addresses(shown[PORT.kind], called),
            "security_groups": sorted(group["name"] for group in shown[SECURITY_GROUP.kind]),
        }
    return result


def _shown_to(run: Run, asked: Object, tenant: Tenant) -> Raw:
    """What Neutron answers when the tenant asks itself."""
    cloud = open_cloud({**run.params, "cloud": asked["cloud"], "auth": asked["auth"]})
    try:
        if cloud.authorize() != tenant.id:
            raise TaskError(
                "The credentials that were given for tenant '%s' are those of another project: correct cloud or auth."
                % tenant.project
            )
        kinds = [family.kind for family in _SHOWN]
        found = cloud.together(lambda kind: cloud.list("network", PATHS[kind], COLLECTIONS[kind]), kinds)
        return dict(zip(kinds, found, strict=True))
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
                "cloud": {"type": "str"},
                "auth": {"type": "dict", "options": AUTH_OPTIONS},
            },
            "mutually_exclusive": [("cloud", "auth")],
        },
        "fail_on_findings": {"type": "bool", "default": False},
    },
    _info,
    {"required_one_of": [("pod", "tenants")]},
)
