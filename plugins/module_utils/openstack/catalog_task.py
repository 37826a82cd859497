# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module openstack_pod_catalog does: images, flavors and volume types in one plan."""

from __future__ import annotations

import typing as t

from ..reconcile import Object, Step, plan
from ..runner import Task
from .carrying import carry_out
from .catalog import FAMILIES, OPTIONS, wanted
from .catalog_cloud import CatalogWriter, look
from .options import OPENSTACK, Run


def _catalog(run: Run) -> Object:
    objects = wanted(run.params)
    absent = run.params["state"] == "absent"
    there = look(run.transport, objects)
    steps: list[Step] = []
    for family in FAMILIES:
        if family.kind in objects:
            keys = [item[family.key] for item in objects[family.kind]] if absent else []
            asked: t.Sequence[Object] = [] if absent else objects[family.kind]
            steps += plan(family, asked, there[family.kind], absent=keys, recreate=True)
    families = [family for family in FAMILIES if family.kind in objects]
    return carry_out(run, steps, CatalogWriter(run.transport), families)


OPENSTACK_POD_CATALOG = Task(
    OPENSTACK,
    {**OPTIONS, "state": {"type": "str", "choices": ["present", "absent"], "default": "present"}},
    _catalog,
    {"required_one_of": [tuple(OPTIONS)]},
)
