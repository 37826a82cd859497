# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Table of IPU-Machines with their state and component versions. No I/O."""

from __future__ import annotations

import re
import typing as t
from collections import Counter

Reported = t.Mapping[str, t.Any]

HOT_CELSIUS = 85  # above it, a machine is hot: as the alert IpuHot
_TEMPERATURE = "average die temp"  # attribute of IPUs
# Attributes of IPUs with versions, for controllers that do not report versions of agents.
_ATTRIBUTES = {"IPU firmware": "firmware version", "Driver": "driver version"}


def table(info: Reported, runs: t.Sequence[Reported]) -> dict[str, t.Any]:
    """Return the versions of every machine as tested, else the current ones; minority versions are marked as odd."""
    agents = {agent["id"]: agent for agent in info.get("agents") or ()}
    columns = _versions(info, runs)
    ids = list(agents) or ([agent for run in runs for agent in run.get("agents") or ()] if columns else [])
    ids += sorted({agent for versions in columns.values() for agent in versions}.difference(ids))
    # On a tie, the version of the first machine counts as usual.
    usual = {
        title: Counter(versions[id] for id in ids if id in versions).most_common(1)[0][0]
        for title, versions in columns.items()
    }
    return {
        "columns": list(columns),
        "rows": [
            {
                "agent": id,
                "state": agents.get(id, {}).get("state") or "",
                "host": agents.get(id, {}).get("host") or "",
                "cells": [
                    {"text": versions.get(id, ""), "odd": id in versions and versions[id] != usual[title]}
                    for title, versions in columns.items()
                ],
            }
            for id in ids
        ],
    }


def problems(info: Reported) -> list[str]:
    """Return the machines that are down or hot, each as a sentence."""
    down = ["Machine %s is down." % agent["id"] for agent in info.get("agents") or () if agent.get("state") == "Down"]
    hot = {agent: degrees for agent, degrees in celsius(info).items() if degrees > HOT_CELSIUS}
    sentence = "Machine %s is hot: an IPU has %g °C. Check its fans and the air flow."
    return down + [sentence % item for item in hot.items()]


def celsius(info: Reported) -> dict[str, float]:
    """Return the highest temperature of the IPUs of each machine that reports one."""
    found = {}
    for agent, ipus in (info.get("ipu_attributes") or {}).items():
        texts = [str(attributes.get(_TEMPERATURE, "")) for attributes in ipus.values()]
        numbers = [float(match[1]) for text in texts if (match := re.match(r"(\d+(?:\.\d+)?) ?C$", text))]
        if numbers:
            found[agent] = max(numbers)
    return found


def _versions(info: Reported, runs: t.Iterable[Reported]) -> dict[str, dict[str, str]]:
    """Return the version on each agent by component."""
    found: dict[str, dict[str, str]] = {}
    for title, name in _ATTRIBUTES.items():
        for agent, ipus in (info.get("ipu_attributes") or {}).items():
            if name in (ipus.get("0") or {}):
                found.setdefault(title, {})[agent] = ipus["0"][name]
    for agent in info.get("agents") or ():
        for component, version in (agent.get("versions") or {}).items():
            found.setdefault(component, {})[agent["id"]] = version
    for result in (result for run in runs for result in run["results"]):
        for component, versions in result["versions"].items():
            found.setdefault(component, {}).update(versions)
        for failure in result["failures"]:
            if failure["kind"] == "version" and failure["component"] and failure["versions"]:
                found.setdefault(failure["component"], {}).update(failure["versions"])
    return {title: versions for title, versions in found.items() if versions}
