# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of V-IPU object and their module options.

Options and fields have the same names and types in modules, transports, results and diffs. Options have no
defaults here: for an omitted option the controller chooses a value on creation and keeps it afterwards.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ..reconcile import Action, Family, Field, Mode, Object, Step
from .names import CLUSTER_TOPOLOGY, ROLE, TOPOLOGY
from .partition_fields import PARTITION_FIELDS

# The controller reports take_over only as false, for an agent whose machine another controller or agent uses.
AGENT = Family(
    "agent",
    (
        Field("host"),
        Field("port", Mode.SERVER_DEFAULTED),
        Field("take_over"),
        Field("in_service", replaces="service_reason"),
        Field("service_reason", Mode.SERVER_DEFAULTED),
    ),
)
CLUSTER = Family(
    "cluster",
    (Field("agents"), Field("num_ilds", Mode.SERVER_DEFAULTED), Field("topology"), Field("cluster_topology")),
)
ALLOCATION = Family(
    "allocation",
    (
        Field("cluster", immutable=True),
        Field("size", Mode.SERVER_DEFAULTED, replaces="agents"),
        Field("agents", Mode.SERVER_DEFAULTED, replaces="size"),
    ),
)
PARTITION = Family("partition", tuple(item.field for item in PARTITION_FIELDS))
USER = Family("user", (Field("role"), Field("allocations", Mode.SET)))

FAMILIES = (AGENT, CLUSTER, ALLOCATION, PARTITION, USER)  # each depends only on earlier ones

_DEPENDS_ON = {
    "cluster": ("agents", "agent"),
    "allocation": ("cluster", "cluster"),
    "partition": ("allocation", "allocation"),
}


def with_dependents(steps: list[Step], seen: t.Mapping[str, list[Object]]) -> list[Step]:
    """Add the dependents of removed objects to a forced batch: they are removed too, and recreated when desired.

    ``seen`` are the actual objects by kind; other kinds are not managed.
    """
    planned = {(step.family.kind, step.key): step for step in steps}
    removed: dict[str, set[str]] = {family.kind: set() for family in FAMILIES}
    for family in FAMILIES:
        name, required_kind = _DEPENDS_ON.get(family.kind, ("", ""))
        for item in seen.get(family.kind, ()):
            id = (family.kind, item[family.key])
            step = planned.get(id)
            if name and not removed[required_kind].isdisjoint(_as_list(item.get(name))):
                if step is None:
                    planned[id] = Step(family, item[family.key], Action.DELETE, before=item)
                elif step.desired is not None:
                    planned[id] = replace(step, action=Action.RECREATE)
            if id in planned and planned[id].action in (Action.DELETE, Action.RECREATE):
                removed[family.kind].add(item[family.key])
    return list(planned.values())


def _as_list(value: t.Any) -> list[str]:
    return value if isinstance(value, list) else [value]


_NAMES: dict[str, t.Any] = {"type": "list", "elements": "str"}

AGENT_OPTIONS: dict[str, t.Any] = {
    "id": {"type": "str", "required": True},
    "host": {"type": "str"},
    "port": {"type": "int"},
    "take_over": {"type": "bool"},
    "in_service": {"type": "bool"},
    "service_reason": {"type": "str"},
}
CLUSTER_OPTIONS: dict[str, t.Any] = {
    "id": {"type": "str", "required": True},
    "agents": _NAMES,
    "num_ilds": {"type": "int"},
    "topology": {"type": "str", "choices": TOPOLOGY.choices},
    "cluster_topology": {"type": "str", "choices": CLUSTER_TOPOLOGY.choices},
}
ALLOCATION_OPTIONS: dict[str, t.Any] = {
    "id": {"type": "str", "required": True},
    "cluster": {"type": "str"},
    "size": {"type": "int"},
    "agents": _NAMES,
}
PARTITION_OPTIONS: dict[str, t.Any] = {
    "id": {"type": "str", "required": True},
    **{item.name: item.option for item in PARTITION_FIELDS},
}
USER_OPTIONS: dict[str, t.Any] = {
    "id": {"type": "str", "required": True},
    "role": {"type": "str", "choices": ROLE.choices},
    "allocations": _NAMES,
}
OPTIONS: dict[str, dict[str, t.Any]] = {
    "agent": AGENT_OPTIONS,
    "cluster": CLUSTER_OPTIONS,
    "allocation": ALLOCATION_OPTIONS,
    "partition": PARTITION_OPTIONS,
    "user": USER_OPTIONS,
}
