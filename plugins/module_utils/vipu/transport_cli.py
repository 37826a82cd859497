# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way over the command lines vipu-admin and vipu, for what Graphcore's controller offers no API for.

Only documented flags are given and only documented outputs are read. There is no transaction here:
steps are done one by one in the order in which they depend on each other, the first that fails ends
the run, and everything after it is reported as not tried.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import typing as t

from ..reconcile import Action, Failure, ItemError, Object, Step
from . import cli_output
from .client import Connection, VipuError

_REMOVE_ORDER = ("partition", "allocation", "cluster", "agent", "user")
_CREATE_ORDER = ("agent", "cluster", "allocation", "partition", "user")
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")  # whatever else it were, it is no flag
_Work = list[tuple[Step, bool]]  # the commands in their order; whether each removes
_LOCALE = {"LC_ALL": "C.UTF-8"}
_KEPT = ("PATH", "HOME", "USER", "TMPDIR")


class CliTransport:
    """See transport.Transport."""

    def __init__(self, connection: Connection, vipu_admin: str, vipu: str) -> None:
        self._connection = connection
        self._commands = {"vipu-admin": vipu_admin, "vipu": vipu}
        self._access_keys: dict[str, str] = {}

    def close(self) -> None:
        """Nothing stays open."""

    def version(self) -> str:
        return str(self._parsed(cli_output.server_version, self._run("vipu", "--server-version"), "the version"))

    def read(self, kind: str) -> list[Object]:
        command = "vipu" if kind in ("partition", "allocation") else "vipu-admin"
        text = self._run(command, "list", kind + "s")
        rows = self._parsed(cli_output.table, text, "the list of %ss" % kind)
        return [item for item in map(_READERS[kind], rows) if item["id"]]

    def write(self, steps: list[Step], force: bool) -> list[ItemError]:
        removals = [step for step in steps if step.action in (Action.DELETE, Action.RECREATE)]
        creations = [step for step in steps if step.wanted is not None]
        removals.sort(key=lambda step: _REMOVE_ORDER.index(step.family.kind))
        creations.sort(key=lambda step: _CREATE_ORDER.index(step.family.kind))
        work = [(step, True) for step in removals] + [(step, False) for step in creations]
        for step in steps:
            if not _ID.fullmatch(step.key):
                sentence = "'%s' is no name of a %s: use letters, digits, '.', '_' and '-'." % (
                    step.key,
                    step.family.kind,
                )
                return _not_done([], [(step, False), *work], sentence)
        for index, (step, removing) in enumerate(work):
            try:
                if removing:
                    self._remove(step.family.kind, step.key, force)
                else:
                    self._create(step)
            except VipuError as error:
                return _not_done(work[:index], work[index:], error.sentence)
        return []

    def _remove(self, kind: str, key: str, force: bool) -> None:
        command = "vipu" if kind == "partition" else "vipu-admin"
        self._run(command, "remove", kind, key, *(["--force"] if force else []))

    def _create(self, step: Step) -> None:
        kind, wanted = step.family.kind, step.wanted or {}
        if step.action is Action.CHANGE:
            raise VipuError(
                "Cannot change %s '%s': the command line has no command for that; remove it first, or use "
                "transport grpc." % (kind, step.key),
                "UNIMPLEMENTED",
            )
        flags = _FLAGS[kind](wanted)
        if kind == "user":
            # The command leaves a file with the key in its folder; the module writes its own.
            with tempfile.TemporaryDirectory() as folder:
                text = self._run("vipu-admin", "create", kind, step.key, *flags, cwd=folder)
            key = cli_output.access_key(text)
            if key:
                self._access_keys[step.key] = key
            return
        self._run("vipu" if kind == "partition" else "vipu-admin", "create", kind, step.key, *flags)

    def partition_status(self, id: str) -> Object:
        item = next((item for item in self.read("partition") if item["id"] == id), None)
        if item is None:
            raise VipuError("Partition '%s' does not exist." % id, "NOT_FOUND")
        # The command line tells the state and nothing of the rest.
        return {
            "id": id,
            "state": item.get("state"),
            "operation": None,
            "errors": [],
            "max_retries": None,
            "retries": None,
            "last_auto_reset": None,
        }

    def reset_partition(self, id: str, relocatable: bool) -> None:
        self._run("vipu", "reset", "partition", id)

    def ipuof_config(self, id: str) -> list[Object]:
        item = next((item for item in self.read("partition") if item["id"] == id), None)
        if item is None:
            raise VipuError(
                "Cannot get the IPUoF configuration of partition '%s': it does not exist." % id, "NOT_FOUND"
            )
        configs = []
        for gcd in range(item.get("num_gcds", 1)):
            text = self._run("vipu", "get", "partition", id, "--gcd", str(gcd), "--ipuof-configs")
            configs.append(self._parsed(cli_output.first_json, text, "the IPUoF configuration"))
        return configs

    def fits(self, allocation: str, sizes: list[int]) -> dict[int, int]:
        raise VipuError(
            "The command line cannot tell what fits: use transport grpc, or leave fits out.", "UNIMPLEMENTED"
        )

    def discovered(self) -> list[Object]:
        rows = self._parsed(cli_output.table, self._run("vipu-admin", "discover", "agent"), "the discovered agents")
        return [
            {
                "host": row.get("host"),
                "port": _number(row.get("port")),
                "interface": row.get("network interface"),
                "age": _seconds(row.get("time since last seen")),
                "auto_add_id": row.get("agent auto-add id"),
                "agent": None,
            }
            for row in rows
        ]

    def access_key(self, user: str) -> str | None:
        return self._access_keys.get(user)

    def _run(self, command: str, *arguments: str, cwd: str | None = None) -> str:
        """Run a command and give its output; raises VipuError when it says that it failed."""
        path = self._commands[command]
        try:
            done = subprocess.run(  # noqa: S603 - a list, no shell; names are checked before
                [path, *arguments],
                env=self._environment(),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._connection.timeout,
                check=False,
                encoding="utf-8",
                errors="replace",
            )
        except FileNotFoundError:
            raise VipuError(
                "The command '%s' was not found on the host of the task: install it there, or give its path "
                "with %s_path." % (path, command.replace("-", "_")),
                "MISSING_COMMAND",
            ) from None
        except PermissionError:
            raise VipuError("The command '%s' may not be run: check its mode." % path, "MISSING_COMMAND") from None
        except subprocess.TimeoutExpired:
            raise VipuError(
                "The command '%s %s' did not end within %g seconds: check that the controller at %s answers, or allow "
                "more with timeout."
                % (command, " ".join(arguments[:2]), self._connection.timeout, self._connection.address),
                "DEADLINE_EXCEEDED",
            ) from None
        reason = cli_output.failure(done.stdout) or cli_output.failure(done.stderr)
        if reason is None and done.returncode:
            told = (done.stderr.strip() or done.stdout.strip()).splitlines()
            reason = told[-1] if told else "it ended with status %d and said nothing" % done.returncode
        if reason is not None:
            # Reasons come with their subject from some servers and without it from others.
            subject = "Cannot %s" % " ".join(arguments[:2])
            if len(arguments) > 2:
                subject += " '%s'" % arguments[2]
            sentence = (
                reason if reason.startswith(("Cannot ", "The V-IPU controller")) else "%s: %s" % (subject, reason)
            )
            raise VipuError(sentence.rstrip(".") + ".", "FAILED", done.stdout + done.stderr)
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """What the commands see: credentials go by environment, since arguments are seen by everybody."""
        connection = self._connection
        options = {
            "API_HOST": connection.host,
            "API_PORT": str(connection.port),
            "API_USER_ID": connection.user_id,
            "API_ACCESS_KEY": connection.access_key,
            "CA_PATH": connection.ca_path,
            "CLIENT_CERT": connection.client_cert,
            "CLIENT_KEY": connection.client_key,
        }
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {**kept, **_LOCALE, **{"VIPU_CLI_" + name: value for name, value in options.items() if value}}

    def _parsed(self, parse: t.Callable[[str], t.Any], text: str, what: str) -> t.Any:
        try:
            return parse(text)
        except ValueError as error:
            raise VipuError("Cannot read %s that the command printed: %s." % (what, error), "UNREADABLE") from None


def _not_done(done: _Work, left: _Work, sentence: str) -> list[ItemError]:
    """The errors of what is left when its first command has failed with this sentence."""
    removed = {(step.family.kind, step.key) for step, removing in done if removing}
    errors: dict[tuple[str, str], ItemError] = {}
    for step, _removing in left:
        name = (step.family.kind, step.key)
        failure = Failure.HALF_DONE if name in removed else Failure.NOT_TRIED if errors else Failure.REFUSED
        errors.setdefault(name, ItemError.of(step, sentence, failure))
        if failure is Failure.REFUSED:
            sentence = "Not tried, because the command before it failed: %s" % sentence
    return list(errors.values())


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _seconds(text: str | None) -> float | None:
    try:
        return float((text or "").rstrip("s"))
    except ValueError:
        return None


def _known(item: Object) -> Object:
    """Without the fields that the output does not have, which then are not compared."""
    return {name: value for name, value in item.items() if value is not None or name == "id"}


def _words(text: str | None) -> list[str] | None:
    return None if text is None else text.replace(",", " ").split()


def _state(text: str | None) -> str | None:
    return None if text is None else text.upper().removeprefix("PS_")


_pick = cli_output.pick
_READERS: dict[str, t.Callable[[dict[str, str]], Object]] = {
    "agent": lambda row: _known(
        {
            "id": _pick(row, "agent id", "agent"),
            "host": _pick(row, "host"),
            "port": _number(_pick(row, "port")),
            "state": _pick(row, "status", "state"),
            "cluster": _pick(row, "cluster", "cluster id") or None,
            "allocation": _pick(row, "allocation", "allocation id") or None,
        }
    ),
    "cluster": lambda row: _known(
        {
            "id": _pick(row, "cluster", "cluster id"),
            "agents": _words(_pick(row, "agents")),
            "num_ilds": _number(_pick(row, "ilds", "number of ilds", "ipu-link domains", "num ipu-link domains")),
            "topology": (_pick(row, "topology", "ipu-link topology", "ild topology") or "").lower() or None,
            "cluster_topology": (_pick(row, "cluster topology", "gw topology") or "").lower() or None,
        }
    ),
    "allocation": lambda row: _known(
        {
            "id": _pick(row, "allocation id", "allocation"),
            "cluster": _pick(row, "cluster", "cluster id"),
            "agents": _words(_pick(row, "agents")),
            "size": len(_words(_pick(row, "agents")) or ()) or None,
        }
    ),
    "partition": lambda row: _known(
        {
            "id": _pick(row, "partition", "partition id"),
            "allocation": _pick(row, "allocation", "allocation id"),
            "cluster": _pick(row, "cluster", "cluster id"),
            "size": _number(_pick(row, "size")),
            "num_gcds": _number(_pick(row, "gcds")),
            "routing": (_pick(row, "ild routing", "ipu-link routing") or "").lower() or None,
            "state": _state(_pick(row, "state")),
        }
    ),
    "user": lambda row: _known(
        {
            "id": _pick(row, "user", "user id", "name"),
            "role": (_pick(row, "role") or "").lower() or None,
            "allocations": _words(_pick(row, "allocations")),
        }
    ),
}


def _agent_flags(wanted: Object) -> list[str]:
    return ["--host", wanted.get("host") or "", "--port", str(wanted.get("port") or 8080)]


def _cluster_flags(wanted: Object) -> list[str]:
    flags = ["--agents", ",".join(wanted.get("agents") or ())]
    if (wanted.get("num_ilds") or 1) > 1:
        flags += ["--num-ipulinkdomains", str(wanted["num_ilds"])]
        flags += ["--cluster-topology", wanted.get("cluster_topology") or "looped"]
    if wanted.get("topology"):
        flags += ["--topology", wanted["topology"]]
    return flags


def _allocation_flags(wanted: Object) -> list[str]:
    if wanted.get("agents"):
        raise VipuError(
            "Cannot create allocation '%s' from a list of agents: the command line only takes a size; give size, or "
            "use transport grpc." % wanted["id"],
            "UNIMPLEMENTED",
        )
    return ["--cluster", wanted.get("cluster") or "", "--size", str(wanted.get("size") or 0)]


def _partition_flags(wanted: Object) -> list[str]:
    unknown = [
        name for name in ("ipus", "gw_routing", "num_segments", "disable_auto_reset", "relocatable") if wanted.get(name)
    ]
    if unknown:
        raise VipuError(
            "Cannot create partition '%s': the command line has no flag for %s; use transport grpc."
            % (wanted["id"], " and ".join(unknown)),
            "UNIMPLEMENTED",
        )
    values = {
        "--size": wanted.get("size"),
        "--allocation": wanted.get("allocation"),
        "--cluster": wanted.get("cluster"),
        "--num-gcds": wanted.get("num_gcds"),
        "--gcd-sync-replicas": wanted.get("num_replicas"),
        "--routing": wanted.get("routing"),
        "--sync-type": wanted.get("sync_type"),
    }
    flags = [part for flag, value in values.items() if value for part in (flag, str(value))]
    return flags + (["--reconfigurable"] if wanted.get("reconfigurable") else [])


def _user_flags(wanted: Object) -> list[str]:
    if (wanted.get("role") or "user") != "user":
        raise VipuError(
            "Cannot create user '%s' with role %s: the command line has no flag for it; use transport grpc."
            % (wanted["id"], wanted["role"]),
            "UNIMPLEMENTED",
        )
    return ["--allocations", ",".join(wanted["allocations"])] if wanted.get("allocations") else []


_FLAGS: dict[str, t.Callable[[Object], list[str]]] = {
    "agent": _agent_flags,
    "cluster": _cluster_flags,
    "allocation": _allocation_flags,
    "partition": _partition_flags,
    "user": _user_flags,
}
