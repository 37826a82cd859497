# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module openstack_pod_network does: one read of each collection, one plan, few requests."""

from __future__ import annotations

from ..reconcile import Action, Object
from ..runner import Task
from .carrying import carry_out
from .checks import check_asked
from .looking import check_offload, group_names, kinds_for, look, network_names, quotas
from .options import OPENSTACK, Run
from .planning import exact_routers, planned
from .quotas import check_quotas
from .reading import Seen, read
from .resources import CONFIG_OPTIONS, FAMILIES, SHARE
from .wanted import Objects, going, wanted
from .writing import Writer


def _network(run: Run) -> Object:
    params, cloud = run.params, run.transport
    absent, owner = params["state"] == "absent", params["pod"]
    config: Object = {plural: [] for plural in CONFIG_OPTIONS} if absent else params["config"]
    objects = wanted(config, owner)
    check_asked(objects)
    prune = list(CONFIG_OPTIONS) if absent else params["prune"]
    projects = [item["project"] for item in config.get(SHARE.plural) or ()]
    seen = look(cloud, kinds_for(config, absent), network_names(config), projects, owner, group_names(config))
    read(seen, owner)
    steps = planned(objects, seen, owner, prune, exact_routers(config), going(config))
    check_offload(cloud, steps)
    if any(step.action is Action.CREATE for step in steps):
        check_quotas(steps, quotas(cloud, seen.project), seen.project)
    if run.check_mode:
        run.warnings.extend(_missing(objects, seen))
    kinds = {*objects, *(step.family.kind for step in steps)}
    return carry_out(run, steps, Writer(cloud, seen, owner), [family for family in FAMILIES if family.kind in kinds])


def _missing(objects: Objects, seen: Seen) -> list[str]:
    """What a task before this one may make, and must."""
    unknown = sorted({item["project"] for item in objects.get(SHARE.kind, ())} - set(seen.projects))
    names = ", ".join("'%s'" % name for name in unknown)
    return ["Unless a task before this one makes what is missing: there is no project %s." % names] if unknown else []


OPENSTACK_POD_NETWORK = Task(
    OPENSTACK,
    {
        "pod": {"type": "str", "required": True},
        "config": {"type": "dict", "options": CONFIG_OPTIONS},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "prune": {"type": "list", "elements": "str", "choices": list(CONFIG_OPTIONS), "default": []},
    },
    _network,
    {"required_if": [("state", "present", ("config",))]},
)
