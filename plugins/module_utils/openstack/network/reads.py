# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Neutron API: reads of the actual state.

A Neutron that has just started can return empty collections when its first requests are concurrent. So the first
request of a read is sent alone, and a read with contradictions is repeated without concurrency.
"""

from __future__ import annotations

import typing as t

from ...reconcile import Object, UserError
from ..common.client import Cloud, CloudError
from ..common.lookup import project_id
from ..common.tags import TAG, owner_of
from .consistency import contradiction, doubt
from .families import ALL_PROJECTS, COLLECTIONS, NETWORK, PATHS, PORT, ROUTER, SECURITY_GROUP, SHARE, SUBNET
from .parse import ROUTER_PORTS, NetworkState, Raw, RawState, parse_state
from .query import Query

_IDS_PER_REQUEST = 40  # limits the length of the URL
_OWN_FAMILIES = (SECURITY_GROUP, ROUTER, SHARE)  # read for the project only
_MOST_READS = 4
_MANILA = "shared_file_system"


def fetch(cloud: Cloud, query: Query) -> NetworkState:
    """Read the actual state, each collection once.

    The state includes all ports on owned networks and on those that the query names, and all ports of the owner.
    A kind that Neutron does not support is empty. Raises UserError.
    """
    project = query.project or cloud.authorize()
    raw = _consistent(lambda alone: _read(cloud, query, project, alone), query.owner, project)
    found = RawState(project, raw, _project_ids(cloud, query, raw), doubt=doubt(raw, query.owner, project))
    return parse_state(found, query.owner)


def fetch_all_projects(cloud: Cloud, with_subnets: bool = False) -> Raw:
    """Read the networks, routers, shares and router ports of all projects. Raises UserError."""
    kinds = [NETWORK.kind, ROUTER.kind, SHARE.kind] + [SUBNET.kind] * with_subnets

    def read(alone: bool) -> dict[str, list[Object]]:
        raw = _collections(cloud, kinds, "", alone)
        raw[PORT.kind] = cloud.list("network", "/ports", "ports", device_owner=list(ROUTER_PORTS))
        return raw

    return _consistent(read, "", "")


def has_file_shares(cloud: Cloud) -> bool:
    """Return whether the cloud has Manila. Raises UserError."""
    return cloud.has_service(_MANILA)


def fetch_file_shares(cloud: Cloud, project: str) -> list[Object]:
    """Read the shared file systems of all projects, each with its access rules as ``rules``.

    ``project`` is one to which the credentials do not belong. Manila ignores ``all_tenants`` without rights for other
    projects, but rejects a request for their quotas. Raises UserError.
    """
    try:
        cloud.request(_MANILA, "GET", "/quota-sets/%s" % project)
    except CloudError as error:
        if error.status != 403:
            raise
        raise UserError(
            "Cannot read the shares of all projects: the credentials are not for an administrator of Manila. Use those "
            "of an administrator."
        ) from None
    shares = cloud.list(_MANILA, "/shares/detail", "shares", all_tenants="1")
    rules = cloud.map(lambda share: _access_rules(cloud, share["id"]), shares)
    return [{**share, "rules": found} for share, found in zip(shares, rules, strict=True)]


def _access_rules(cloud: Cloud, share: str) -> list[Object]:
    try:
        found = cloud.request(_MANILA, "GET", "/share-access-rules", params={"share_id": share})
    except CloudError as error:
        if error.status != 404:  # deleted in the meantime
            raise
        return []
    return t.cast("list[Object]", found["access_list"])


def _consistent(read: t.Callable[[bool], dict[str, list[Object]]], owner: str, project: str) -> Raw:
    """Call ``read`` until its result is plausible. Its argument is whether to send each request alone.

    A contradiction must disappear. Two equal reads are accepted with another doubt, which then blocks removals only.
    Raises UserError.
    """
    raw = read(False)
    for _attempt in range(_MOST_READS - 1):
        if not contradiction(raw, project) and not doubt(raw, owner, project):
            return raw
        previous, raw = raw, read(True)
        if _ids(raw) == _ids(previous) and not contradiction(raw, project):
            return raw
    raise UserError(
        "Cannot trust the objects that Neutron returned: %s. Nothing was changed. Wait until Neutron has started, and "
        "run the task again." % (contradiction(raw, project) or "they differ from read to read")
    )


def _ids(raw: Raw) -> dict[str, set[str]]:
    return {kind: {item["id"] for item in items} for kind, items in raw.items()}


def _read(cloud: Cloud, query: Query, project: str, alone: bool) -> dict[str, list[Object]]:
    kinds = [kind for kind in PATHS if kind in query.kinds and kind != PORT.kind]
    raw = _collections(cloud, kinds, project, alone)
    unknown = sorted(set(query.groups) - {group["name"] for group in raw.get(SECURITY_GROUP.kind, ())})
    if unknown:
        kind = SECURITY_GROUP.kind
        raw[kind] = [*raw[kind], *cloud.list("network", PATHS[kind], COLLECTIONS[kind], name=unknown)]
    if PORT.kind in query.kinds:
        raw[PORT.kind] = _ports(cloud, query, raw, project)
    return raw


def _collections(cloud: Cloud, kinds: t.Sequence[str], project: str, alone: bool) -> dict[str, list[Object]]:
    """Read collections, of an empty ``project`` for all. The first request is always sent alone."""
    own = [family.kind for family in _OWN_FAMILIES] if project else []

    def read(kind: str) -> list[Object]:
        query = {"project_id": project} if kind in own else {}
        try:
            return cloud.list("network", PATHS[kind], COLLECTIONS[kind], **query)
        except CloudError as error:
            if error.status == 404:
                return []
            raise

    found = [read(kind) for kind in kinds[:1]]
    others = kinds[1:]
    found += [read(kind) for kind in others] if alone else cloud.map(read, others)
    return dict(zip(kinds, found, strict=True))


def _project_ids(cloud: Cloud, query: Query, raw: Raw) -> dict[str, str]:
    """Read the ids of the projects that desired shares, or all actual shares, refer to."""
    names = sorted({name for name in query.projects if name != ALL_PROJECTS})
    found = dict(zip(names, cloud.map(lambda name: project_id(cloud, name), names), strict=True))
    ids = {name: id for name, id in found.items() if id}
    ids[ALL_PROJECTS] = ALL_PROJECTS
    if query.all_projects:
        targets = {share.get("target_project") or share["target_tenant"] for share in raw[SHARE.kind]}
        if targets - {ALL_PROJECTS}:
            known = cloud.list("identity", "/projects", "projects")
            ids.update({project["name"]: project["id"] for project in known if project["id"] in targets})
    return ids


def _ports(cloud: Cloud, query: Query, raw: Raw, project: str) -> list[Object]:
    def is_owned(item: Object) -> bool:
        return item["project_id"] == project and owner_of(item) is not None

    of_subnets = {subnet["network_id"] for subnet in raw.get(SUBNET.kind, ()) if is_owned(subnet)}
    ids = [
        network["id"]
        for network in raw.get(NETWORK.kind, ())
        if network["name"] in query.networks or network["id"] in of_subnets or is_owned(network)
    ]
    found = fetch_ports(cloud, ids)
    # An earlier task may have created ports on networks that this task does not name.
    found += cloud.list("network", "/ports", "ports", project_id=project, tags=TAG + query.owner)
    return list({port["id"]: port for port in found}.values())


def fetch_ports(cloud: Cloud, networks: list[str]) -> list[Object]:
    """Read all ports on the networks with these ids."""
    parts = [networks[start : start + _IDS_PER_REQUEST] for start in range(0, len(networks), _IDS_PER_REQUEST)]
    found = cloud.map(lambda part: cloud.list("network", "/ports", "ports", network_id=part), parts)
    return [port for part in found for port in part]
