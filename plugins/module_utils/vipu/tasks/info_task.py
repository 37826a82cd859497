# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_info: read the objects of a controller."""

from __future__ import annotations

import typing as t

from ...reconcile import Object
from ...runner import Task
from ..options import VIPU, Run, connection

_KINDS = {
    "agents": "agent",
    "clusters": "cluster",
    "allocations": "allocation",
    "partitions": "partition",
    "users": "user",
}


def _info(run: Run) -> Object:
    subset = dict.fromkeys(run.params["gather_subset"])
    used = connection(run.params)
    result: Object = {"changed": False, "secure": used.secure and bool(used.access_key)}
    if "version" in subset:
        result["version"] = run.transport.version()
    kinds = [kind for name, kind in _KINDS.items() if name in subset or (kind == "allocation" and "fits" in subset)]
    read = run.transport.read_all(kinds)
    result.update({name: read[kind] for name, kind in _KINDS.items() if name in subset})
    if "ipu_attributes" in subset:
        found = run.transport.ipu_attributes()
        result["ipu_attributes"] = {agent: _text_keys(ipus) for agent, ipus in found.items()}
    if "fits" in subset:
        sizes = run.params["sizes"]
        ids = [item["id"] for item in read["allocation"]]
        result["fits"] = {id: _text_keys(run.transport.fits(id, sizes)) for id in ids}
    return result


def _text_keys(mapping: dict[int, t.Any]) -> dict[str, t.Any]:
    """Convert keys to text, as JSON does for results of modules, so that the fast path returns the same."""
    return {str(key): value for key, value in mapping.items()}


VIPU_INFO = Task(
    VIPU,
    {
        "gather_subset": {
            "type": "list",
            "elements": "str",
            "choices": ["version", *_KINDS, "ipu_attributes", "fits"],
            "default": ["version", "agents", "clusters", "allocations", "partitions"],
        },
        "sizes": {"type": "list", "elements": "int", "default": [1, 2, 4, 8, 16, 32, 64]},
    },
    _info,
)
