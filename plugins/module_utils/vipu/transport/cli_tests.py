# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parser of the output of ``vipu-admin test cluster``, with objects like those of ``objects.test_run``. No I/O.

Summaries are text for users. The parser knows the forms of Graphcore's guide and of the openipu command. Any other
line of a failed test becomes a failure without a kind, so no information is lost.
"""

from __future__ import annotations

import re
import typing as t

from ...reconcile import Object
from ..cluster_test.table import FLAGS
from . import cli_output

_CAPTION = re.compile(r"^\s*Showing test results for cluster (\S+?)\.?\s*$", re.MULTILINE)
_STATES = (
    ("running", re.compile(r"Test in cluster (\S+) is in progress")),
    ("stopped", re.compile(r"Last test in cluster (\S+) was stopped")),
    ("aborted", re.compile(r"No results available\. Cannot end the test .* of cluster '([^']+)'")),
    ("none", re.compile(r"No results available()")),
)
_SKIPPED = re.compile(r"Test did not run because of an earlier dependency test failure \((.+)\)")
_DISTURBS = re.compile(r"Test did not run because it would disturb partitions \((.+)\)")
_TRAFFIC_TEST = re.compile(r"Errors encountered in traffic test (\d+)")
# Earlier releases marked GW-Links with their kind, and wrote a space before links inside a machine.
_SYNC = re.compile(
    r"(?P<a>\S+):(?P<ap>\d+) <--> (?P<bp>\d+):(?P<b>\S+)(?P<gw> \[GW-Link\])?(?P<untested> \(not tested\))?"
)
_CABLE = re.compile(
    r"(?P<a>\S+):(?P<ap>\d+) \[(?P<kind>IPU-Link|GW-Link)\] <--> (?P<b>\S+):(?P<bp>\d+) \[[^\]]+\] "
    r"\((?P<how>failed|not tested)\)"
)
_MISPLACED = re.compile(
    r"(?P<a>\S+) \((?P<kind>IPU-Cluster|GW-Link)[^()]* (?P<ap>\d+)\) <--> "
    r"(?P<b>\S+) \([^()]* (?P<bp>\d+)\) \(connected to wrong port\)"
)
_GW_LINK = re.compile(r"(?P<a>\S+):gw(?P<ap>\d+) <--> (?P<b>\S+):gw(?P<bp>\d+)(?P<untested> \(not tested\))?")
_LINK = re.compile(r"(?P<a>\S+):(?P<ap>\d+) <--> (?P<b>\S+):(?P<bp>\d+)(?P<untested> \(not tested\))?")
_INSIDE = re.compile(r"(?P<agent>[^\s:]+): ?(?P<link>[^\s:]+)")
_TOO_FEW = re.compile(r"(?P<agent>[^\s:]+): \d+ internal links missing")
_NOISE_INSIDE = re.compile(r"- (?P<agent>[^\s:]+): ?(?P<link>[^\s:]+) \((?P<reading>\d+|link down)\)")
_NOISE = re.compile(r"- (?P<b>\S+):(?P<bp>\d+) <--> (?P<a>\S+):(?P<ap>\d+) \((?P<reading>\d+|link down)\)")
# Names of agents may contain dashes, names of components do not.
_VERSION = re.compile(r"(?P<agent>\S+)-(?P<component>[^:-]+): (?P<version>.+)")
_PFC = re.compile(r"(?P<agent>\S+): (?P<rest>\{.*pfc classes.*\})")
_SILENT = re.compile(r"Agent '(?P<agent>[^']+)' did not respond: .*")
# Headings and totals.
_REMARKS = re.compile(
    r"Failed Sync Links:|Failed Links:|Failed GW Links:|Cables not connected as expected:|Traffic test failed|"
    r"Errors encountered in traffic test \d+|corrected link errors: \d+|Components with mismatched versions found:|"
    r"PFC settings not as expected:|- \S+ \(no response\)"
)


def status(text: str, reason: str | None) -> Object:
    """Return the last run from its table, or from the ``reason`` of the failed command when there is no table.

    Raises ValueError for unreadable output and for an unknown reason.
    """
    caption = _CAPTION.search(text)
    if reason and not caption:
        for state, pattern in _STATES:
            if match := pattern.search(reason):
                run = _run(state, match[1] or None, [])
                return {**run, "error": reason} if state == "aborted" else run
        raise ValueError(cli_output.quoted(reason))
    results = [_result(rows) for rows in cli_output.groups(text, "test type", "test")]
    if not results:
        raise ValueError(cli_output.quoted(text))
    return _run("finished", caption[1] if caption else None, results)


def _run(state: str, cluster: str | None, results: list[Object]) -> Object:
    return {
        "state": state,
        "run_id": None,
        "cluster": cluster,
        "agents": None,
        "num_ilds": None,
        "topology": None,
        "ok": state == "finished" and all(result["ok"] for result in results),
        "requested": [result["test"] for result in results],
        "running": None,
        "error": None,
        "started": None,
        "ended": None,
        "results": results,
    }


def _result(rows: list[cli_output.Row]) -> Object:
    first = rows[0]
    test = next((name for name in FLAGS if name in (first.get("test type"), first.get("test"))), None)
    counts = re.fullmatch(r"(\d+)/(\d+)", first.get("passed", ""))
    if test is None or counts is None or "duration" not in first:
        raise ValueError(cli_output.quoted(" | ".join(first.values())))
    lines = [row.get("summary", "") for row in rows]
    passed, total = int(counts[1]), int(counts[2])
    because = next((match[1] for line in lines if (match := _SKIPPED.fullmatch(line))), None)
    disturbs = next((match[1].split(", ") for line in lines if (match := _DISTURBS.fullmatch(line))), [])
    skipped = because is not None or bool(disturbs) or (total == 0 and "skipped" in lines[0].lower())
    wrong = not skipped and (passed < total or len(lines) > 1)
    return {
        "test": test,
        "duration": cli_output.seconds(first["duration"]),
        "passed": passed,
        "total": total,
        "ok": because is None and not wrong,
        "summary": lines,
        "skipped": skipped,
        "skipped_because": because,
        "disturbs": disturbs,
        "failures": _failures(test, lines) if wrong else [],
        "versions": {},  # printed for different versions only
    }


def _failures(test: str, lines: list[str]) -> list[Object]:
    if test == "Version":
        return _versions(lines)
    found: list[Object] = []
    number = None
    for line in lines:
        if match := _TRAFFIC_TEST.fullmatch(line):
            number = int(match[1])
        if not _REMARKS.fullmatch(line):
            failure = _failure(test, line)
            failure["traffic_test"] = number
            found.append(failure)
    return found


def _failure(test: str, line: str) -> Object:
    if match := _SILENT.fullmatch(line):
        return _new_failure("agent_unreachable", line, agent=match["agent"])
    if test == "Sync-Link" and (match := _SYNC.fullmatch(line)):
        return _cable("no_sync", line, match, "GW-Link" if match["gw"] else "Sync-Link", match["untested"])
    if test in ("Sync-Link", "GW-Link") and (match := _GW_LINK.fullmatch(line)):
        return _cable("no_sync" if test == "Sync-Link" else "link_down", line, match, "GW-Link", match["untested"])
    if test == "Cabling" and (match := _MISPLACED.fullmatch(line)):
        return _cable("wrong_port", line, match, "GW-Link" if match["kind"] == "GW-Link" else "IPU-Link")
    if test == "Cabling" and (match := _CABLE.fullmatch(line)):
        return _cable("no_cable", line, match, match["kind"], match["how"] == "not tested")
    if test == "Traffic" and (match := _NOISE.fullmatch(line)):
        if match["reading"] == "link down":
            return _cable("link_down", line, match, "IPU-Link")
        return {**_cable("corrected_errors", line, match, "IPU-Link"), "corrected_errors": int(match["reading"])}
    if test == "Traffic" and (match := _NOISE_INSIDE.fullmatch(line)):
        made = _new_failure("link_down", line, agent=match["agent"], link=match["link"])
        if match["reading"] != "link down":
            made.update(kind="corrected_errors", corrected_errors=int(match["reading"]))
        return made
    if test in ("IPU-Link", "GW-Link") and (match := _LINK.fullmatch(line)):
        return _cable("link_down", line, match, test, match["untested"])
    if test == "IPU-Link" and (match := _INSIDE.fullmatch(line)):
        return _new_failure("link_down", line, agent=match["agent"], link=match["link"])
    if test == "IPU-Link" and (match := _TOO_FEW.fullmatch(line)):
        return _new_failure("link_down", line, agent=match["agent"])
    if test == "PFC-settings" and (match := _PFC.fullmatch(line)):
        return _new_failure("pfc_classes", line, agent=match["agent"])
    return _new_failure(None, line)


def _versions(lines: list[str]) -> list[Object]:
    """Return one failure per component with the versions on all agents."""
    found: list[Object] = []
    components: dict[str, dict[str, str]] = {}
    for line in lines:
        if match := _VERSION.fullmatch(line):
            components.setdefault(match["component"], {})[match["agent"]] = match["version"]
        elif not _REMARKS.fullmatch(line):
            found.append(_failure("Version", line))
    for component, versions in components.items():
        reason = "%s has %d versions." % (component, len(set(versions.values())))
        found.append({**_new_failure("version", reason), "component": component, "versions": versions})
    return found


def _cable(kind: str, line: str, match: re.Match[str], cable: str, untested: t.Any = None) -> Object:
    made = _new_failure("agent_unreachable" if untested else kind, line)
    made["a"] = {"agent": match["a"], "kind": cable, "port": int(match["ap"])}
    made["b"] = {"agent": match["b"], "kind": cable, "port": int(match["bp"])}
    return made


def _new_failure(kind: str | None, reason: str, agent: str | None = None, link: str | None = None) -> Object:
    return {
        "kind": kind,
        "reason": reason,
        "a": None,
        "b": None,
        "found": None,
        "found_b": None,
        "empty": False,  # not printed
        "empty_b": False,
        "agent": agent,
        "link": link,
        "corrected_errors": None,
        "traffic_test": None,
        "component": None,
        "versions": {},
    }
