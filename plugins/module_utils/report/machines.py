# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of IPU-Machines: their state, and the versions of what runs on them. Pure."""

from __future__ import annotations

import typing as t
from collections import Counter

Told = t.Mapping[str, t.Any]

# What attributes of IPUs tell, for controllers that tell nothing better.
_ATTRIBUTES = {"IPU firmware": "firmware version", "Driver": "driver version"}


def table(info: Told, run: Told | None) -> dict[str, t.Any]:
    """Of every machine the versions as they were tested, else as they are now; those that differ from most are odd."""
    agents = {agent["id"]: agent for agent in info.get("agents") or ()}
    columns = _versions(info, run)
    ids = list(agents) or (list((run or {}).get("agents") or ()) if columns else [])
    ids += sorted({agent for told in columns.values() for agent in told}.difference(ids))
    # When half of them have another one, that of the first machine counts as usual.
    usual = {
        title: Counter(told[id] for id in ids if id in told).most_common(1)[0][0] for title, told in columns.items()
    }
    return {
        "columns": list(columns),
        "rows": [
            {
                "agent": id,
                "state": agents.get(id, {}).get("state") or "",
                "host": agents.get(id, {}).get("host") or "",
                "cells": [
                    {"text": told.get(id, ""), "odd": id in told and told[id] != usual[title]}
                    for title, told in columns.items()
                ],
            }
            for id in ids
        ],
    }


def _versions(info: Told, run: Told | None) -> dict[str, dict[str, str]]:
    """Of every component the version on each agent."""
    found: dict[str, dict[str, str]] = {}
    for title, name in _ATTRIBUTES.items():
        for agent, ipus in (info.get("ipu_attributes") or {}).items():
            if name in (ipus.get("0") or {}):
                found.setdefault(title, {})[agent] = ipus["0"][name]
    for agent in info.get("agents") or ():
        for component, version in (agent.get("versions") or {}).items():
            found.setdefault(component, {})[agent["id"]] = version
    for result in (run or {}).get("results", ()):
        for component, versions in result["versions"].items():
            found.setdefault(component, {}).update(versions)
        for failure in result["failures"]:
            if failure["kind"] == "version" and failure["component"] and failure["versions"]:
                found.setdefault(failure["component"], {}).update(failure["versions"])
    return {title: told for title, told in found.items() if told}
