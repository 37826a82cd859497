# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what Neutron and Keystone hold: every collection once, some at a time."""

from __future__ import annotations

import re
import typing as t

from ..reconcile import Action, Object, SentenceError, Step
from .client import Cloud, CloudError
from .reading import Seen, owner_of
from .resources import (
    ADDRESS_SCOPE,
    COLLECTIONS,
    EVERYBODY,
    NETWORK,
    PATHS,
    PORT,
    ROUTER,
    SECURITY_GROUP,
    SHARE,
    SUBNET,
    SUBNET_POOL,
    TAG,
)

_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PER_REQUEST = 40  # ids, so that the address of the request does not get too long
_OWN = (SECURITY_GROUP, ROUTER, SHARE)  # of which only the project's own are read


def look(
    cloud: Cloud,
    kinds: t.Collection[str],
    networks: t.Collection[str],
    projects: t.Iterable[str],
    owner: str,
    groups: t.Collection[str] = (),
    project: str = "",
) -> Seen:
    """What there is of these kinds, with ports on owned networks and on those named, and all of the owner's.

    ``groups`` are security groups that are named, which may be others' that are shared. ``project`` is the id of the
    one whose all of it is, unless that is logged in to. A kind that the cloud does not know is one of which there is
    nothing. Raises SentenceError.
    """
    project = project or cloud.authorize()
    asked = [kind for kind in PATHS if kind in kinds and kind != PORT.kind]

    def read(kind: str) -> list[Object]:
        query = {"project_id": project} if kind in [family.kind for family in _OWN] else {}
        try:
            return cloud.list("network", PATHS[kind], COLLECTIONS[kind], **query)
        except CloudError as error:
            if error.status == 404:
                return []
            raise

    seen = Seen(project, dict(zip(asked, cloud.together(read, asked), strict=True)))
    lost = sorted(set(groups) - {raw["name"] for raw in seen.raw.get(SECURITY_GROUP.kind, ())})
    if lost:
        kind = SECURITY_GROUP.kind
        seen.raw[kind] += cloud.list("network", PATHS[kind], COLLECTIONS[kind], name=lost)
    names = sorted({name for name in projects if name != EVERYBODY})
    found = dict(zip(names, cloud.together(lambda name: project_id(cloud, name), names), strict=True))
    seen.projects = {name: id for name, id in found.items() if id}
    seen.projects[EVERYBODY] = EVERYBODY
    if PORT.kind in kinds:
        seen.raw[PORT.kind] = _ports(cloud, seen, networks, owner)
    return seen


def _ports(cloud: Cloud, seen: Seen, names: t.Collection[str], owner: str) -> list[Object]:
    ours = {raw["network_id"] for raw in seen.raw.get(SUBNET.kind, ()) if _tagged(seen, raw)}
    ids = [
        raw["id"]
        for raw in seen.raw.get(NETWORK.kind, ())
        if raw["name"] in names or raw["id"] in ours or _tagged(seen, raw)
    ]
    found = ports_on(cloud, ids)
    # A task before this one may have made some on networks that this one does not name.
    found += cloud.list("network", "/ports", "ports", project_id=seen.project, tags=TAG + owner)
    return list({raw["id"]: raw for raw in found}.values())


def _tagged(seen: Seen, raw: Object) -> bool:
    return raw["project_id"] == seen.project and owner_of(raw) is not None


def ports_on(cloud: Cloud, networks: list[str]) -> list[Object]:
    """All ports on the networks with these ids."""
    parts = [networks[start : start + _PER_REQUEST] for start in range(0, len(networks), _PER_REQUEST)]
    found = cloud.together(lambda part: cloud.list("network", "/ports", "ports", network_id=part), parts)
    return [raw for part in found for raw in part]


def project_id(cloud: Cloud, name: str) -> str | None:
    """The id of a project by its name, or its id itself; None when there is none. Raises SentenceError."""
    if _ID.fullmatch(name):
        return name
    found = cloud.list("identity", "/projects", "projects", name=name)
    if len(found) > 1:
        ids = ", ".join(sorted(raw["id"] for raw in found))
        raise SentenceError(
            "There are %d projects named '%s': name the one that is meant by its id (%s)." % (len(found), name, ids)
        )
    return str(found[0]["id"]) if found else None


def check_offload(cloud: Cloud, steps: t.Iterable[Step]) -> None:
    """Refuse to make ports for hardware offload where Neutron knows of none. Raises SentenceError."""
    made = [step for step in steps if step.family is PORT and step.action in (Action.CREATE, Action.RECREATE)]
    asking = next((step for step in made if (step.wanted or {}).get("hardware_offload")), None)
    if asking is None:
        return
    try:
        cloud.request("network", "GET", "/extensions/port-hardware-offload-type")
    except CloudError as error:
        if error.status != 404:
            raise
        raise SentenceError(
            "Port '%s' is to be for hardware offload, which this Neutron does not know: give ML2 the extension driver "
            "port_hardware_offload_type, or leave hardware_offload out." % asking.key
        ) from None


def quotas(cloud: Cloud, project: str) -> dict[str, Object]:
    """What the project may have and has, by what Neutron calls it; empty when the cloud does not tell."""
    try:
        found = cloud.request("network", "GET", "/quotas/%s/details.json" % project)
    except CloudError as error:
        if error.status in (403, 404):
            return {}
        raise
    return t.cast("dict[str, Object]", found["quota"])


def network_names(config: Object) -> set[str]:
    """The networks that an option ``config`` speaks of."""
    names = {item["name"] for item in config.get(NETWORK.plural) or ()}
    names.update(item["network"] for plural in (SUBNET.plural, PORT.plural) for item in config.get(plural) or ())
    return names


def group_names(config: Object) -> set[str]:
    """The security groups that the ports of an option ``config`` name, and that are not in it themselves."""
    own = {item["name"] for item in config.get(SECURITY_GROUP.plural) or ()}
    named = {name for item in config.get(PORT.plural) or () for name in item.get("security_groups") or ()}
    return named - own


def kinds_for(config: Object, everything: bool) -> set[str]:
    """The kinds that have to be read for an option ``config``."""
    kinds = {family.kind for family in (NETWORK, SUBNET, PORT, SECURITY_GROUP, ROUTER)}
    pools = config.get(SUBNET_POOL.plural) is not None or config.get(ADDRESS_SCOPE.plural) is not None
    if everything or pools or any(item.get("subnet_pool") for item in config.get(SUBNET.plural) or ()):
        kinds |= {SUBNET_POOL.kind, ADDRESS_SCOPE.kind}
    if everything or config.get(SHARE.plural) is not None:
        kinds |= {SHARE.kind}
    return kinds
