# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The V-IPU family: its kinds of object, and the options by which modules ask for them.

The options of an object and its fields have the same names and forms everywhere: in modules, in what
transports read, in results and in diffs. They have no defaults here: what a task does not say, the
controller chooses when it makes the object, and leaves alone when the object is there.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ..reconcile import Action, Family, Field, Mode, Object, Step
from .names import CLUSTER_TOPOLOGY, GW_ROUTING, ROLE, ROUTING, SYNC_TYPE, TOPOLOGY


def _places(ipus: t.Any) -> set[tuple[int, int]]:
    """Which IPUs a list names, whatever the partition calls them."""
    return {(ipu["ild"], ipu["topology_id"]) for ipu in ipus or ()}


AGENT = Family("agent", (Field("host"), Field("port", Mode.SERVER_DEFAULTED)))
CLUSTER = Family(
    "cluster",
    (Field("agents"), Field("num_ilds", Mode.SERVER_DEFAULTED), Field("topology"), Field("cluster_topology")),
)
ALLOCATION = Family(
    "allocation",
    (
        Field("cluster", immutable=True),
        Field("size", Mode.SERVER_DEFAULTED, instead_of="agents"),
        Field("agents", Mode.SERVER_DEFAULTED, instead_of="size"),
    ),
)
PARTITION = Family(
    "partition",
    (
        Field("allocation", immutable=True),
        Field("cluster", immutable=True),
        Field("size", Mode.SERVER_DEFAULTED, immutable=True),
        Field("num_gcds", Mode.SERVER_DEFAULTED, immutable=True),
        Field("num_replicas", Mode.SERVER_DEFAULTED, immutable=True),
        Field("num_segments", Mode.SERVER_DEFAULTED, immutable=True),
        Field("routing", immutable=True),
        Field("gw_routing", immutable=True),
        Field("sync_type", immutable=True),
        Field("reconfigurable", immutable=True),
        Field("ipus", Mode.SERVER_DEFAULTED, immutable=True, view=_places),
        # The public API takes these two and never tells them; a controller of ours tells and changes them.
        Field("disable_auto_reset"),
        Field("relocatable"),
    ),
)
USER = Family("user", (Field("role"), Field("allocations", Mode.SET)))

FAMILIES = (AGENT, CLUSTER, ALLOCATION, PARTITION, USER)  # in the order in which they depend on each other

_STANDS_ON = {
    "cluster": ("agents", "agent"),
    "allocation": ("cluster", "cluster"),
    "partition": ("allocation", "allocation"),
}


def carried_along(steps: list[Step], seen: t.Mapping[str, list[Object]]) -> list[Step]:
    """The steps of a forced batch: what stands on a removed object goes with it, and comes back when it is wanted.

    ``seen`` are the actual objects by kind; kinds that are not in it are nobody's concern.
    """
    planned = {(step.family.kind, step.key): step for step in steps}
    gone: dict[str, set[str]] = {family.kind: set() for family in FAMILIES}
    for family in FAMILIES:
        name, ground = _STANDS_ON.get(family.kind, ("", ""))
        for item in seen.get(family.kind, ()):
            place = (family.kind, item[family.key])
            step = planned.get(place)
            if name and not gone[ground].isdisjoint(_listed(item.get(name))):
                if step is None:
                    planned[place] = Step(family, item[family.key], Action.DELETE, before=item)
                elif step.wanted is not None:
                    planned[place] = replace(step, action=Action.RECREATE)
            if place in planned and planned[place].action in (Action.DELETE, Action.RECREATE):
                gone[family.kind].add(item[family.key])
    return list(planned.values())


def _listed(value: t.Any) -> list[str]:
    return value if isinstance(value, list) else [value]


_NAMES: dict[str, t.Any] = {"type": "list", "elements": "str"}

AGENT_OPTIONS: dict[str, t.Any] = {
    "id": {"type": "str", "required": True},
    "host": {"type": "str"},
    "port": {"type": "int"},
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
    "allocation": {"type": "str"},
    "cluster": {"type": "str"},
    "size": {"type": "int"},
    "num_gcds": {"type": "int"},
    "num_replicas": {"type": "int"},
    "num_segments": {"type": "int"},
    "routing": {"type": "str", "choices": ROUTING.choices},
    "gw_routing": {"type": "str", "choices": GW_ROUTING.choices},
    "sync_type": {"type": "str", "choices": SYNC_TYPE.choices},
    "reconfigurable": {"type": "bool"},
    "ipus": {
        "type": "list",
        "elements": "dict",
        "options": {
            "ild": {"type": "int", "default": 0},
            "topology_id": {"type": "int", "required": True},
            "ild_routing_id": {"type": "int", "default": 0},
            "routing_id": {"type": "int", "default": 0},
        },
    },
    "disable_auto_reset": {"type": "bool"},
    "relocatable": {"type": "bool"},
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
