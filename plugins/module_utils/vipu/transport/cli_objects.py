# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion of rows that the command lines print to objects, and of objects to flags. No I/O.

Columns and flags are those of Graphcore's documents. Fields that a release does not print are missing from
the object and are not compared. Fields without a flag are rejected before any command runs.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ...reconcile import Object
from ..client import VipuError
from ..names import ALL_ALLOCATIONS, CLUSTER_TOPOLOGY, NO_ALLOCATIONS, OPERATION, TOPOLOGY, Names
from ..partition_fields import IPU_FIELDS, PARTITION_FIELDS, PartitionField
from ..ports import AGENT_PORT
from .cli_output import Row, pick, quoted, seconds

# The column with the id of an object, in all known releases.
KEYS: dict[str, tuple[str, ...]] = {
    "agent": ("agent id", "agent"),
    "cluster": ("cluster id", "cluster"),
    "allocation": ("allocation id", "allocation"),
    "partition": ("partition id", "partition"),
    "user": ("user id", "user", "name"),
}


@dataclass(frozen=True)
class _Column:
    """A field of an object: the names of its column, the function that reads a cell, and the value of an empty cell."""

    names: tuple[str, ...]
    read: t.Callable[[str], t.Any]
    empty: t.Any = ...  # unknown

    def __call__(self, row: Row) -> t.Any:
        if not any(name in row for name in self.names):
            return ...
        cell = pick(row, *self.names)
        return self.empty if cell is None else self.read(cell)


def _number(cell: str) -> int:
    if not cell.isdecimal():
        raise ValueError("not a number: %s" % quoted(cell))
    return int(cell)


def _words(cell: str) -> list[str]:
    return cell.replace(",", " ").split()


def _choice(names: Names) -> t.Callable[[str], t.Any]:
    """Return a reader of enum values; other words, such as DEFAULT, cannot be compared and count as unknown."""

    def read(cell: str) -> t.Any:
        try:
            return names.text(names.number(cell.lower().replace("_", "-").removeprefix("st-")))
        except ValueError:
            return ...

    return read


def _state(cell: str) -> str:
    return cell.upper().removeprefix("PS_")


def _yes_no(cell: str) -> t.Any:
    return {"yes": True, "true": True, "no": False, "false": False}.get(cell.lower(), ...)


_READERS: dict[str, t.Callable[[str], t.Any]] = {"int": _number, "str": str, "bool": _yes_no}


def _partition_column(field: PartitionField) -> _Column:
    return _Column(field.columns, _choice(field.names) if field.names else _READERS[field.option["type"]])


_SERVICE_COLUMN = ("service",)

_FIELDS: dict[str, dict[str, _Column]] = {
    "agent": {
        "host": _Column(("host",), str),
        "port": _Column(("port",), _number),
        "state": _Column(("status", "state"), str),
        "cluster": _Column(("cluster", "cluster id"), str, None),
        "allocation": _Column(("allocation", "allocation id"), str, None),
        "in_service": _Column(_SERVICE_COLUMN, lambda cell: cell.lower() != "out of service"),
    },
    "cluster": {
        "agents": _Column(("agents",), _words),
        "num_ilds": _Column(("ilds", "num ilds", "ipu-link domains", "num ipu-link domains"), _number),
        "topology": _Column(("topology", "ipu-link topology", "ild topology"), _choice(TOPOLOGY)),
        "cluster_topology": _Column(("cluster topology", "gw topology"), _choice(CLUSTER_TOPOLOGY)),
        "allocations": _Column(("allocations",), _words, []),
    },
    "allocation": {
        "cluster": _Column(("cluster", "cluster id"), str),
        "size": _Column(("agents",), lambda cell: len(_words(cell))),
        "agents": _Column(("agents",), _words),
    },
    "partition": {
        "state": _Column(("state",), _state),
        # Most releases list few of these; others print some of them for a single partition only.
        **{field.name: _partition_column(field) for field in PARTITION_FIELDS if field.columns},
    },
    "user": {
        "role": _Column(("role",), str.lower),
        "allocations": _Column(("allocations",), _words, []),
    },
}


def item(kind: str, row: Row) -> Object:
    """Return the object of a row. Raises ValueError for an unreadable cell."""
    fields = {name: column(row) for name, column in _FIELDS[kind].items()}
    # Agents of Graphcore's controller are always in service.
    defaults = {"in_service": True} if kind == "agent" else {}
    known = {name: value for name, value in fields.items() if value is not ...}
    return {"id": pick(row, *KEYS[kind]), **defaults, **known}


def has_service(row: Row) -> bool:
    """Return whether a row of the list of agents has the state of service."""
    return any(name in row for name in _SERVICE_COLUMN)


def partition(id: str, facts: Row, ipus: t.Sequence[Row]) -> Object:
    """Return the object that ``get partition`` prints. Raises ValueError when it is another object."""
    found = item("partition", facts)
    if found["id"] != id:
        raise ValueError("no partition '%s'" % id)
    if ipus and all({field.column for field in IPU_FIELDS} <= set(row) for row in ipus):
        found["ipus"] = [{field.name: _number(row[field.column]) for field in IPU_FIELDS} for row in ipus]
    return found


def status(facts: Row) -> Object:
    """Return the status that ``get partition`` prints. Values not printed are None, but ``state`` is missing."""
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
    """Return the object of a row of ``discover agent``; ``age`` is in seconds."""
    age = pick(row, "time since last seen")
    return {
        "host": pick(row, "host"),
        "port": _number(pick(row, "port") or ""),
        "interface": pick(row, "network interface"),
        "age": None if age is None else seconds(age),
        "auto_add_id": pick(row, "agent auto-add id"),
        "conflict": pick(row, "conflict") or None,
    }


# Values that can be taken neither for a flag nor for a list.
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_HOST = re.compile(r"[^-,\s\x00-\x1f\x7f][^,\s\x00-\x1f\x7f]*")
# Fields with ids of other objects, and the kind of these objects.
_REFERENCES = {
    "cluster": {"agents": "agent"},
    "allocation": {"cluster": "cluster"},
    "partition": {"allocation": "allocation", "cluster": "cluster"},
    "user": {"allocations": "allocation"},
}


def name(kind: str, id: str, of: str = "") -> str:
    """Return the id if it is valid, so that it cannot be taken for a flag or a list. Raises VipuError.

    ``of`` is the object that references it, for the message.
    """
    if not _ID.fullmatch(id):
        raise VipuError(
            "%s '%s' is not a valid %s id. Use letters, digits, '.', '_' and '-', and do not start with '-'."
            % ("Cannot create %s:" % of if of else "Cannot run the command:", id, kind),
            "INVALID_ARGUMENT",
        )
    return id


def host(host: str, subject: str) -> str:
    """Return the host if it is valid. Raises VipuError with a message that begins with ``subject``."""
    if not _HOST.fullmatch(host):
        raise VipuError(
            "%s: '%s' is not a host name or address. It must not contain spaces or commas, or start with '-'."
            % (subject, host),
            "INVALID_ARGUMENT",
        )
    return host


def _check_values(kind: str, desired: Object) -> None:
    """Check the ids and the host that a command receives. Raises VipuError."""
    of = "%s '%s'" % (kind, desired["id"])
    for field, other in _REFERENCES.get(kind, {}).items():
        value = desired.get(field) or ()
        if value == [ALL_ALLOCATIONS]:
            continue
        for id in (value,) if isinstance(value, str) else value:
            name(other, id, of)
    if desired.get("host"):
        host(desired["host"], "Cannot create %s" % of)


def flags(kind: str, desired: Object) -> list[str]:
    """Return the flags of ``create`` for a desired object. Raises VipuError for a field without a flag.

    A flag and its value are two words, as Graphcore's guides write them.
    """
    _check_values(kind, desired)
    beyond = [name for name in _NO_FLAG.get(kind, ()) if desired.get(name) not in _UNSET]
    if kind == "agent" and desired.get("in_service") is False:
        beyond.append("in_service false")
    if beyond or (kind == "user" and desired.get("role") == "admin"):
        raise VipuError(
            "Cannot create %s '%s' over the command line: it has no flag for %s. Omit it or use transport grpc."
            % (kind, desired["id"], " and ".join(beyond) or "role admin"),
            "UNIMPLEMENTED",
        )
    return _FLAGS[kind](desired)


def service_flags(desired: Object) -> list[str]:
    """Return the flags of ``update agent`` that set the state of service of an agent."""
    if desired["in_service"]:
        return ["--in-service"]
    return ["--out-of-service", *_flags({"--reason": desired.get("service_reason")})]


_UNSET: tuple[t.Any, ...] = (None, False, [], "")
_NO_FLAG = {
    "allocation": ("agents",),
    "partition": tuple(field.name for field in PARTITION_FIELDS if not field.flag),
}


def _flags(values: t.Mapping[str, t.Any]) -> list[str]:
    return [part for flag, value in values.items() if value for part in (flag, str(value))]


def _cluster(desired: Object) -> list[str]:
    several = (desired.get("num_ilds") or 1) > 1
    return _flags(
        {
            "--agents": ",".join(desired.get("agents") or ()),
            "--num-ipulinkdomains": desired["num_ilds"] if several else None,
            "--topology": desired.get("topology"),
            # A single IPU-Link domain has no GW-Links.
            "--cluster-topology": (desired.get("cluster_topology") or "looped") if several else None,
        }
    )


def _partition(desired: Object) -> list[str]:
    words: list[str] = []
    for field in PARTITION_FIELDS:
        value = desired.get(field.name)
        if field.flag and value:
            words += [field.flag] if value is True else [field.flag, str(value)]
    return words


def _user(desired: Object) -> list[str]:
    allocations = desired.get("allocations")
    if allocations == [ALL_ALLOCATIONS]:
        return []
    if allocations == [NO_ALLOCATIONS]:
        raise VipuError(
            "Cannot create user '%s' over the command line: --allocations %s means no allocations. Use transport grpc "
            "for the allocation of this name." % (desired["id"], NO_ALLOCATIONS),
            "UNIMPLEMENTED",
        )
    return ["--allocations", ",".join(allocations or [NO_ALLOCATIONS])]


_FLAGS: dict[str, t.Callable[[Object], list[str]]] = {
    "agent": lambda desired: [
        *_flags({"--host": desired.get("host"), "--port": desired.get("port") or AGENT_PORT}),
        *(["--take-over"] if desired.get("take_over") else []),
    ],
    "cluster": _cluster,
    "allocation": lambda desired: _flags({"--cluster": desired.get("cluster"), "--size": desired.get("size")}),
    "partition": _partition,
    "user": _user,
}
