# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects from the rows that the command lines print, and the flags that ask for an object. Pure.

Columns and flags are those of Graphcore's documents. What a release does not print is missing from
the object, so that nobody compares it; what no flag can ask for is refused before anything is done.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ..reconcile import Object
from .cli_output import Row, pick, quoted, seconds
from .client import VipuError
from .names import CLUSTER_TOPOLOGY, GW_ROUTING, OPERATION, ROUTING, SYNC_TYPE, TOPOLOGY

# The column that names an object, in every release that was seen.
KEYS: dict[str, tuple[str, ...]] = {
    "agent": ("agent id", "agent"),
    "cluster": ("cluster id", "cluster"),
    "allocation": ("allocation id", "allocation"),
    "partition": ("partition id", "partition"),
    "user": ("user id", "user", "name"),
}


@dataclass(frozen=True)
class _Column:
    """A field of an object: the names of its column, how its cell is read, and what an empty one means."""

    names: tuple[str, ...]
    read: t.Callable[[str], t.Any]
    empty: t.Any = ...  # nothing is known

    def __call__(self, row: Row) -> t.Any:
        if not any(name in row for name in self.names):
            return ...
        cell = pick(row, *self.names)
        return self.empty if cell is None else self.read(cell)


def _number(cell: str) -> int:
    if not cell.isdecimal():
        raise ValueError("no number: %s" % quoted(cell))
    return int(cell)


def _words(cell: str) -> list[str]:
    return cell.replace(",", " ").split()


def _one_of(choices: t.Sequence[str]) -> t.Callable[[str], t.Any]:
    """A choice in lower case; other words, like DEFAULT, tell nothing that could be compared."""
    return lambda cell: cell.lower() if cell.lower() in choices else ...


def _state(cell: str) -> str:
    return cell.upper().removeprefix("PS_")


def _sync_type(cell: str) -> t.Any:
    try:
        return SYNC_TYPE.text(SYNC_TYPE.number(cell.lower().replace("_", "-").removeprefix("st-")))
    except ValueError:
        return ...  # a name of its own, which tells nothing that could be compared


def _yes_no(cell: str) -> t.Any:
    return {"yes": True, "true": True, "no": False, "false": False}.get(cell.lower(), ...)


_FIELDS: dict[str, dict[str, _Column]] = {
    "agent": {
        "host": _Column(("host",), str),
        "port": _Column(("port",), _number),
        "state": _Column(("status", "state"), str),
        "cluster": _Column(("cluster", "cluster id"), str, None),
        "allocation": _Column(("allocation", "allocation id"), str, None),
    },
    "cluster": {
        "agents": _Column(("agents",), _words),
        "num_ilds": _Column(("ilds", "num ilds", "ipu-link domains", "num ipu-link domains"), _number),
        "topology": _Column(("topology", "ipu-link topology", "ild topology"), _one_of(TOPOLOGY.choices)),
        "cluster_topology": _Column(("cluster topology", "gw topology"), _one_of(CLUSTER_TOPOLOGY.choices)),
        "allocations": _Column(("allocations",), _words, []),
    },
    "allocation": {
        "cluster": _Column(("cluster", "cluster id"), str),
        "size": _Column(("agents",), lambda cell: len(_words(cell))),
        "agents": _Column(("agents",), _words),
    },
    "partition": {
        "allocation": _Column(("allocation", "allocation id"), str),
        "cluster": _Column(("cluster", "cluster id"), str),
        "size": _Column(("size",), _number),
        "num_gcds": _Column(("gcds",), _number),
        "routing": _Column(("ild routing", "ipu-link routing"), _one_of(ROUTING.choices)),
        "gw_routing": _Column(("gw routing",), _one_of(GW_ROUTING.choices)),
        "state": _Column(("state",), _state),
        # Those that are known print these of one partition, if at all.
        "num_replicas": _Column(("replicas",), _number),
        "num_segments": _Column(("ipu-link segments",), _number),
        "sync_type": _Column(("sync type",), _sync_type),
        "reconfigurable": _Column(("reconfigurable",), _yes_no),
        "disable_auto_reset": _Column(("auto reset disabled",), _yes_no),
        "relocatable": _Column(("relocatable",), _yes_no),
    },
    "user": {
        "role": _Column(("role",), str.lower),
        "allocations": _Column(("allocations",), _words, []),
    },
}


def item(kind: str, row: Row) -> Object:
    """The object of a row; raises ValueError for a cell that cannot be read."""
    fields = {name: column(row) for name, column in _FIELDS[kind].items()}
    return {"id": pick(row, *KEYS[kind]), **{name: value for name, value in fields.items() if value is not ...}}


def partition(id: str, facts: Row, ipus: t.Sequence[Row]) -> Object:
    """What ``get partition`` tells of one; raises ValueError when that is about something else."""
    found = item("partition", facts)
    if found["id"] != id:
        raise ValueError("nothing about partition '%s'" % id)
    if ipus and all(set(_IPU_COLUMNS.values()) <= set(row) for row in ipus):
        found["ipus"] = [{field: _number(row[column]) for field, column in _IPU_COLUMNS.items()} for row in ipus]
    return found


_IPU_COLUMNS = {
    "ild": "ild",
    "topology_id": "topology id",
    "ild_routing_id": "segment",
    "routing_id": "id",
}


def status(facts: Row) -> Object:
    """What ``get partition`` tells of what happens to it; what it does not tell is None, and the state missing."""
    operation = (pick(facts, "operation") or "").upper().removeprefix("POS_")
    retries = re.fullmatch(r"(\d+) of (\d+)", pick(facts, "auto resets") or "")
    last = pick(facts, "last auto reset")
    state = pick(facts, "state")
    return {
        **({"state": _state(state)} if state else {}),
        "operation": operation if operation in OPERATION.choices else None,
        "errors": (pick(facts, "errors") or "").splitlines(),
        "max_retries": int(retries[2]) if retries else None,
        "retries": int(retries[1]) if retries else None,
        "last_auto_reset": None if last == "never" else last,
    }


def discovered(row: Row) -> Object:
    """A row of ``discover agent``; ``age`` in seconds."""
    age = pick(row, "time since last seen")
    return {
        "host": pick(row, "host"),
        "port": _number(pick(row, "port") or ""),
        "interface": pick(row, "network interface"),
        "age": None if age is None else seconds(age),
        "auto_add_id": pick(row, "agent auto-add id"),
    }


# Whatever else they are, these are no flags, and one value and not several.
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_HOST = re.compile(r"[^-,\s\x00-\x1f\x7f][^,\s\x00-\x1f\x7f]*")
# The fields that name other objects, and the kind of these.
_REFERENCES = {
    "cluster": {"agents": "agent"},
    "allocation": {"cluster": "cluster"},
    "partition": {"allocation": "allocation", "cluster": "cluster"},
    "user": {"allocations": "allocation"},
}


def name(kind: str, id: str, of: str = "") -> str:
    """The id, when it is one; it must not be taken for a flag or a list. Raises VipuError, which tells ``of`` whom."""
    if not _ID.fullmatch(id):
        raise VipuError(
            "%shere can be no %s '%s': a name has letters, digits, '.', '_' and '-', and no '-' first."
            % ("Cannot create %s: t" % of if of else "T", kind, id),
            "INVALID_ARGUMENT",
        )
    return id


def host(host: str, what: str) -> str:
    """The host, when it can be one; raises VipuError, whose sentence begins with ``what``."""
    if not _HOST.fullmatch(host):
        raise VipuError(
            "%s: '%s' is no host: it has no spaces and no commas, and no '-' first." % (what, host), "INVALID_ARGUMENT"
        )
    return host


def _check_values(kind: str, wanted: Object) -> None:
    """Raise VipuError when an id or host that a command is to be given is none."""
    of = "%s '%s'" % (kind, wanted["id"])
    for field, other in _REFERENCES.get(kind, {}).items():
        value = wanted.get(field) or ()
        for id in (value,) if isinstance(value, str) else value:
            name(other, id, of)
    if wanted.get("host"):
        host(wanted["host"], "Cannot create %s" % of)


def flags(kind: str, wanted: Object) -> list[str]:
    """The flags of ``create`` for a wanted object; raises VipuError for what no flag can ask for.

    A flag and its value are two words, as Graphcore's guides write them.
    """
    _check_values(kind, wanted)
    beyond = [name for name in _NO_FLAG.get(kind, ()) if wanted.get(name) not in _UNSAID]
    if beyond or (kind == "user" and wanted.get("role") == "admin"):
        raise VipuError(
            "Cannot create %s '%s' over the command line: it has no flag for %s; leave that out, or use transport grpc."
            % (kind, wanted["id"], " and ".join(beyond) or "role admin"),
            "UNIMPLEMENTED",
        )
    return _FLAGS[kind](wanted)


_UNSAID: tuple[t.Any, ...] = (None, False, [], "")
_NO_FLAG = {
    "allocation": ("agents",),
    "partition": ("ipus", "gw_routing", "num_segments", "disable_auto_reset", "relocatable"),
}


def _given(values: t.Mapping[str, t.Any]) -> list[str]:
    return [part for flag, value in values.items() if value for part in (flag, str(value))]


def _cluster(wanted: Object) -> list[str]:
    several = (wanted.get("num_ilds") or 1) > 1
    return _given(
        {
            "--agents": ",".join(wanted.get("agents") or ()),
            "--num-ipulinkdomains": wanted["num_ilds"] if several else None,
            "--topology": wanted.get("topology"),
            # One IPU-Link domain has no GW-Links to arrange.
            "--cluster-topology": (wanted.get("cluster_topology") or "looped") if several else None,
        }
    )


def _partition(wanted: Object) -> list[str]:
    values = {
        "--size": wanted.get("size"),
        "--allocation": wanted.get("allocation"),
        "--cluster": wanted.get("cluster"),
        "--num-gcds": wanted.get("num_gcds"),
        "--gcd-sync-replicas": wanted.get("num_replicas"),
        "--routing": wanted.get("routing"),
        "--sync-type": wanted.get("sync_type"),
    }
    return _given(values) + (["--reconfigurable"] if wanted.get("reconfigurable") else [])


_FLAGS: dict[str, t.Callable[[Object], list[str]]] = {
    "agent": lambda wanted: _given({"--host": wanted.get("host"), "--port": wanted.get("port") or 8080}),
    "cluster": _cluster,
    "allocation": lambda wanted: _given({"--cluster": wanted.get("cluster"), "--size": wanted.get("size")}),
    "partition": _partition,
    "user": lambda wanted: _given({"--allocations": ",".join(wanted.get("allocations") or ())}),
}
