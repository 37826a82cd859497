# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failures of a run of cluster tests as a list and as a message. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Object
from .cable_names import cable_name, link_name, port_name

_MAX_NAMED = 3  # failures of a test in a message


def flat(found: Object) -> list[Object]:
    """Return all failures of a run, each with its test."""
    return [{"test": result["test"], **failure} for result in found["results"] for failure in result["failures"]]


def failure_message(found: Object, cluster: str) -> str:
    """Return the failures of a run as one message. Command lines do not always print the cluster of a run."""
    tests = []
    for result in found["results"]:
        if not result["ok"] and not result["skipped"]:
            # Cables that were not tested because an agent did not respond are in the list of failures only.
            causes = [each for each in result["failures"] if each["kind"] != "agent_unreachable" or not each["a"]]
            names = list(dict.fromkeys(map(_named, causes or result["failures"])))
            tests.append("%s %d/%d (%s)" % (result["test"], result["passed"], result["total"], shortened(names)))
    return "Cluster '%s' did not pass its tests: %s." % (cluster, "; ".join(tests))


def unreachable_reason(failure: t.Mapping[str, t.Any]) -> str:
    """Return the reason of a failure of an agent without a response, without a final dot. Empty without a reason.

    The agent may respond, but reject this controller. The reason then contains the remedy.
    """
    return str(failure["reason"]).partition(" did not respond: ")[2].rstrip(".")


def _named(failure: Object) -> str:
    """Return a short description of a failure: the cable with both ends, or the machine."""
    problem = {
        "no_cable": "no cable",
        "wrong_port": "wrong port",
        "no_sync": "no sync",
        "link_down": "link down",
        "corrected_errors": "%s corrected errors" % failure["corrected_errors"],
        "agent_unreachable": "agent does not respond",
    }.get(failure["kind"])
    a, b = failure["a"], failure["b"]
    if a and b:
        ends = (port_name(end["agent"], end["kind"], end["port"]) for end in (a, b))
        return "%s: %s" % (cable_name(*ends), problem)
    if failure["kind"] == "agent_unreachable":
        return "%s: %s" % (failure["agent"], unreachable_reason(failure) or problem)
    if failure["link"]:
        return "%s: %s" % (link_name(failure["agent"], failure["link"]), problem)
    return str(failure["reason"]).rstrip(".")


def shortened(names: t.Sequence[str]) -> str:
    """Return the first names and the number of the others as text."""
    more = " and %d more" % (len(names) - _MAX_NAMED) if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
