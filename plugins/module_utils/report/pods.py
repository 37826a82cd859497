# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of several PODs and their overview. No I/O. The cost is linear in the number of PODs."""

from __future__ import annotations

import typing as t

from ..pod import model
from .findings import FAILED, PASSED, UNTESTED
from .pdus import Readings
from .view import Runs, view

View = dict[str, t.Any]


class Source(t.NamedTuple):
    """Content of the report of one POD; each part may be missing.

    ``info``, ``run`` and ``pdus`` are validated. ``failure`` is the message of a controller that was not read.
    ``machines`` are the agents to show; None shows all.
    """

    pod: model.Pod | None = None
    info: t.Mapping[str, t.Any] | None = None
    run: Runs = None
    pdus: Readings | None = None
    name: str | None = None
    failure: str | None = None
    machines: t.Collection[str] | None = None


def views(sources: t.Sequence[Source]) -> list[View]:
    """Return the view of each POD. Among several PODs, the ids of cables have the number of the POD."""
    several = len(sources) > 1
    found = []
    for number, source in enumerate(sources, 1):
        suffix = "-%d" % number if several else ""
        each = view(source.pod, source.info, source.run, source.pdus, suffix, source.machines)
        if source.name:
            each["title"] = source.name
        if source.failure:
            each["problems"].insert(0, source.failure)
            if each["verdict"]["state"] != FAILED:
                each["verdict"] = {"state": FAILED, "text": "The controller was not read"}
        found.append(each)
    return found


def overview(found: t.Sequence[View]) -> View:
    """Return title, verdict, figures and fills of all PODs, and a row for each POD, from their views."""
    names = list(dict.fromkeys(figure["name"] for each in found for figure in each["figures"]))
    numbers = [{figure["name"]: figure["number"] for figure in each["figures"]} for each in found]
    totals = [{"name": name, "number": sum(row.get(name, 0) for row in numbers), "text": ""} for name in names]
    return {
        "title": "%d PODs" % len(found),
        "run": "",
        "verdict": _verdict(found),
        "figures": totals,
        "fills": max((each["fills"] for each in found), key=len),
        "pods": [
            {
                "id": "pod-%d" % number,
                "title": each["title"],
                "verdict": each["verdict"],
                "actions": len(each["actions"]),
                "problems": len(each["problems"]),
                "figures": [row.get(name, "") for name in names],
            }
            for number, (each, row) in enumerate(zip(found, numbers, strict=True), 1)
        ],
    }


def _verdict(found: t.Sequence[View]) -> dict[str, str]:
    """Return the worst state with the names of its PODs."""
    for state, text in ((FAILED, "Failed: %s"), (UNTESTED, "Not tested: %s")):
        names = [each["title"] for each in found if each["verdict"]["state"] == state]
        if names:
            return {"state": state, "text": text % ", ".join(names)}
    return {"state": PASSED, "text": "All PODs passed"}
