# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module openstack_pod_network."""

from __future__ import annotations

from dataclasses import replace

from ...reconcile import Object
from ...runner import Task
from ..common.apply_plan import Plan, apply_plans
from ..common.options import OPENSTACK, Run
from .api import NetworkWriter
from .checks import check_desired
from .cloud_limits import CloudLimits
from .families import FAMILIES, SHARE, Objects, desired
from .offload import supported_ports
from .options import CONFIG_OPTIONS
from .parse import NetworkState
from .plan import deletions_of, plan_network
from .query import query_of
from .reads import fetch
from .renames import match_renamed


def _apply(run: Run) -> Object:
    params, cloud = run.params, run.transport
    absent, owner = params["state"] == "absent", params["pod"]
    config: Object = {plural: [] for plural in CONFIG_OPTIONS} if absent else params["config"]
    prune = list(CONFIG_OPTIONS) if absent else params["prune"]
    if config.get("ports"):
        limits = CloudLimits(cloud, "")
        config = {**config, "ports": supported_ports(config["ports"], cloud, limits)}
    objects = desired(config, owner)
    check_desired(objects)
    rejected: set[tuple[str, str]] = set()

    def make_plans() -> list[Plan]:
        state = fetch(cloud, query_of(config, owner, everything=absent))
        desired_objects, state = match_renamed(objects, state, owner)
        state = replace(state, rejected_addresses=rejected)
        steps = plan_network(
            desired_objects,
            state,
            owner,
            deletions_of(config, prune, params["accept_incomplete_reads"]),
            CloudLimits(cloud, state.project),
        )
        if run.check_mode:
            run.warnings.extend(_missing_projects(objects, state))
        return [(steps, NetworkWriter(cloud, state, owner))]

    return apply_plans(run, make_plans, [family for family in FAMILIES if family.kind in objects])


def _missing_projects(objects: Objects, state: NetworkState) -> list[str]:
    """Return a warning for the projects of shares that an earlier task may create."""
    unknown = sorted({item["project"] for item in objects.get(SHARE.kind, ())} - set(state.projects))
    names = ", ".join("'%s'" % name for name in unknown)
    return ["Cannot find project %s. The task fails unless an earlier task creates it." % names] if unknown else []


OPENSTACK_POD_NETWORK = Task(
    OPENSTACK,
    {
        "pod": {"type": "str", "required": True},
        "config": {"type": "dict", "options": CONFIG_OPTIONS},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "prune": {"type": "list", "elements": "str", "choices": list(CONFIG_OPTIONS), "default": []},
        "accept_incomplete_reads": {"type": "bool", "default": False},
    },
    _apply,
    {"required_if": [("state", "present", ("config",))]},
)
