# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module openstack_pod_network does: one read of each collection, one plan, few requests."""

from __future__ import annotations

from ..reconcile import Action, Family, Object, Step, converge, nothing_done, plan
from ..runner import Task, TaskError
from . import checks
from .looking import kinds_for, look, network_names, quotas
from .options import OPENSTACK, Run
from .reading import Seen, read
from .resources import CONFIG_OPTIONS, FAMILIES, INTERFACE, PORT, ROUTER
from .wanted import Objects, match_ports, wanted
from .writing import Writer


def _network(run: Run) -> Object:
    params = run.params
    absent = params["state"] == "absent"
    owner = params["pod"]
    config: Object = {plural: [] for plural in CONFIG_OPTIONS} if absent else params["config"]
    objects = wanted(config, owner)
    checks.check_asked(objects)
    projects = [item["project"] for item in config.get("shares") or ()]
    prune = absent or params["prune"]
    seen = look(run.transport, kinds_for(config, prune), network_names(config), projects)
    read(seen, owner)
    if PORT.kind in objects:
        match_ports(objects[PORT.kind], seen, owner)
    exact = {item["name"] for item in config.get(ROUTER.plural) or () if item.get("interfaces") is not None}
    steps = _plan(objects, seen, owner, prune, exact)
    _check(run, steps, objects, seen)
    writer = Writer(run.transport, seen, owner)
    report = converge(steps, writer, run.check_mode, run.diff)
    report.changed = report.changed or writer.wrote
    concerned = [family for family in FAMILIES if family.kind in objects]
    result = {**{family.plural: nothing_done() for family in concerned}, **report.result()}
    if report.failed:
        raise TaskError(result.pop("msg"), **result)
    return result


def _plan(objects: Objects, seen: Seen, owner: str, prune: bool, exact: set[str]) -> list[Step]:
    """``exact`` are the routers whose interfaces are all listed."""
    steps: list[Step] = []
    for family in FAMILIES:
        going = {step.key for step in steps if step.family is ROUTER and step.action is Action.DELETE}

        def left(item: Object, family: Family = family, routers: set[str] = going | exact) -> bool:
            if family is INTERFACE:
                return item["router"] in routers
            return prune and item.get("owner") == owner

        if family.kind in objects or (family is INTERFACE and going):
            asked = objects.get(family.kind, [])
            steps += plan(family, asked, seen.objects.get(family.kind, []), prune=left, recreate=True)
    return steps


def _check(run: Run, steps: list[Step], objects: Objects, seen: Seen) -> None:
    """Raises SentenceError for what would go wrong; nothing was written yet."""
    checks.check_names(objects, seen)
    checks.check_owners(steps, run.params["pod"])
    checks.check_immutable(steps)
    checks.check_vlans(steps, seen)
    checks.check_subnets(steps, seen)
    checks.check_ports(steps, objects, seen)
    if any(step.action is Action.CREATE for step in steps):
        checks.check_quotas(steps, quotas(run.transport, seen.project), seen.project)
    unknown = sorted({item["project"] for item in objects.get("share", ())} - set(seen.projects))
    if unknown and run.check_mode:
        run.warnings.append(
            "Unless a task before this one makes what is missing: there is no project %s."
            % ", ".join("'%s'" % name for name in unknown)
        )


OPENSTACK_POD_NETWORK = Task(
    OPENSTACK,
    {
        "pod": {"type": "str", "required": True},
        "config": {"type": "dict", "options": CONFIG_OPTIONS},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "prune": {"type": "bool", "default": False},
    },
    _network,
    {"required_if": [("state", "present", ("config",))]},
)
