# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transport over the command lines vipu-admin and vipu, for operations without an API in Graphcore's controller.

It uses documented flags and outputs only. There are no transactions. Steps without a command are rejected before
the first command runs. Then the commands run one by one in the order of dependencies. The first failure ends the
run, and later steps are reported as not tried.
"""

from __future__ import annotations

import contextlib
import time
import typing as t
from dataclasses import replace
from functools import partial

from ...reconcile import Action, Failure, ItemError, Object, Step
from ..client import Connection, VipuError
from ..cluster_test.table import FLAGS
from . import cli_objects, cli_output, cli_tests
from .cli_process import Commands

_CREATE_ORDER = ("agent", "cluster", "allocation", "partition", "user")
_REMOVE_ORDER = ("partition", "allocation", "cluster", "agent", "user")
_REMOVING = (Action.DELETE, Action.RECREATE)
# Kinds that the command of tenants lists.
_TENANT_KINDS = ("partition", "allocation")

_PAUSE = 1.0  # seconds between two polls of a test; each is a process
_EXISTS = "already exists"  # part of the error of a command that creates an existing object
_SERVICE = {"in_service", "service_reason"}
_T = t.TypeVar("_T")


class _Work(t.NamedTuple):
    """One command of a batch: its step and the flags of ``create``, None for a removal."""

    step: Step
    flags: list[str] | None


class CliTransport:
    """Transport over the command lines."""

    def __init__(self, connection: Connection, vipu_admin: str, vipu: str) -> None:
        self._commands = Commands(connection, vipu_admin, vipu)
        self._access_keys: dict[str, str] = {}
        self._issued: dict[str, tuple[str, str]] = {}
        self._has_service = False  # vipu-admin has commands for the state of service of agents

    def close(self) -> None:
        self._commands.close()

    def version(self) -> str:
        return _read(cli_output.server_version, self._commands.query("vipu", "--server-version"), "the version")

    def read(self, kind: str) -> list[Object]:
        rows = self._list(kind)
        if kind == "agent" and any("host" not in row for row in rows):
            rows = self._commands.parallel(*(partial(self._facts, row) for row in rows))
        if kind == "agent" and rows:
            self._has_service = cli_objects.has_service(rows[0])
        subject = "the list of %ss" % kind
        return [_read(partial(cli_objects.item, kind), row, subject) for row in rows]

    def read_all(self, kinds: t.Sequence[str]) -> dict[str, list[Object]]:
        return dict(zip(kinds, self._commands.parallel(*(partial(self.read, kind) for kind in kinds)), strict=True))

    def _list(self, kind: str) -> list[cli_output.Row]:
        command = "vipu" if kind in _TENANT_KINDS else "vipu-admin"
        text = self._commands.query(command, "list", kind + "s")
        return _read(lambda text: cli_output.table(text, *cli_objects.KEYS[kind]), text, "the list of %ss" % kind)

    def _facts(self, row: cli_output.Row) -> cli_output.Row:
        """Return a row of the list of agents with the facts of ``get agent``, for releases with short lists."""
        id = cli_objects.name("agent", cli_output.pick(row, *cli_objects.KEYS["agent"]) or "")
        text = self._commands.query("vipu-admin", "get", "agent", id)
        subject = "agent '%s'" % id
        return {**row, **_read(partial(cli_output.block, noun="agent", key="ipu"), text, subject)[0]}

    def write(self, steps: list[Step], force: bool) -> list[ItemError]:
        removals = [_Work(step, None) for step in steps if step.action in _REMOVING]
        removals.sort(key=lambda work: _REMOVE_ORDER.index(work.step.family.kind))
        creations, errors = [], []
        for step in sorted(steps, key=lambda step: _CREATE_ORDER.index(step.family.kind)):
            try:
                cli_objects.name(step.family.title, step.key)
                if step.desired is not None:
                    creations.append(_Work(step, self._flags(step)))
            except VipuError as error:
                errors.append(ItemError.of(step, error.message, error_code=error.error_code))
        if errors:
            return errors + _not_tried(steps, errors)
        return self._run_commands([*removals, *creations], force)

    def validate(self, steps: list[Step], force: bool) -> list[ItemError]:
        """Return no errors, because no command validates."""
        return []

    def _flags(self, step: Step) -> list[str]:
        """Return the flags of the command that creates or changes the object of a step. Raises VipuError."""
        if step.action is not Action.CHANGE:
            return cli_objects.flags(step.family.kind, step.full_object)
        changed = {field.name for field in step.changed_fields}
        if step.family.kind != "agent" or not changed or not changed <= _SERVICE:
            raise VipuError(
                "Cannot change %s '%s' over the command line: it has no such command. Remove the object first, or use "
                "transport grpc." % (step.family.title, step.key),
                "UNIMPLEMENTED",
            )
        if not self._has_service:
            raise VipuError(
                "Cannot change in_service of agent '%s' over the command line: Graphcore's vipu-admin has no such "
                "command. Omit in_service or use transport grpc." % step.key,
                "UNIMPLEMENTED",
            )
        return cli_objects.service_flags(step.full_object)

    def _run_commands(self, batch: list[_Work], force: bool) -> list[ItemError]:
        for index, (step, flags) in enumerate(batch):
            try:
                if flags is None:
                    self._remove(step.family.kind, step.key, force)
                else:
                    self._create(step, flags)
            except VipuError as error:
                removed = [_key(work.step) for work in batch[:index] if work.flags is None]
                left = [work.step for work in batch[index:]]
                fail = partial(ItemError.of, message=error.message, error_code=error.error_code)
                errors = [] if _key(step) in removed else [fail(step)]
                half_done = [step for step in left if _key(step) in removed]
                errors += [fail(step, failure=Failure.HALF_DONE) for step in half_done]
                return errors + _not_tried(left, errors)
        return []

    def _remove(self, kind: str, key: str, force: bool) -> None:
        command = "vipu" if kind in _TENANT_KINDS[:1] else "vipu-admin"
        self._commands.change(command, "remove", kind, key, *(["--force"] if force else []))

    def _create(self, step: Step, flags: list[str]) -> None:
        kind, key = step.family.kind, step.key
        if step.action is Action.CHANGE:
            self._commands.change("vipu-admin", "update", kind, key, *flags)
            return
        if kind == "partition":
            try:
                self._commands.change("vipu", "create", "partition", key, *flags)
            except VipuError as error:
                if not self._created_late(step, error):
                    raise
            return
        text = self._commands.change("vipu-admin", "create", kind, key, *flags)
        if kind == "user":
            access_key = cli_output.access_key(text)
            if access_key is None:
                raise VipuError(
                    "User '%s' was created, but the command printed no access key and does not print it again. Remove "
                    "the user, and check the output of 'vipu-admin create user'." % key,
                    "UNREADABLE",
                )
            self._access_keys[key] = access_key
            # Commands of Graphcore have no certificates of users. Ours write those that users need.
            pair = [self._commands.written("%s.%s" % (key, suffix)) for suffix in ("crt", "key")]
            if pair[0] and pair[1]:
                self._issued[key] = pair[0], pair[1]

    def _created_late(self, step: Step, error: VipuError) -> bool:
        """Return whether a failed command created the partition of a step.

        The command waits until the partition is ACTIVE. It also fails when the partition was created but is not
        ACTIVE in time; the task decides about that. A partition that existed before, or a different one, was created
        by another client.
        """
        if _EXISTS in error.details:
            return False
        found = self._partition(step.key)
        return _is_behind(found) and not replace(step, before=found).changed_fields

    def _partition(self, id: str) -> Object | None:
        """Return a partition, None when it does not exist or cannot be read."""
        try:
            return next((item for item in self.read("partition") if item["id"] == id), None)
        except VipuError:
            return None

    def start_test(self, cluster: str, tests: t.Sequence[str]) -> Object:
        flags = [FLAGS[test] for test in tests]
        self._commands.query("vipu-admin", "test", "cluster", cli_objects.name("cluster", cluster), *flags, "--start")
        return self.test_run()

    def test_run(self, known: int = 0, seconds: float = 0.0) -> Object:
        """Poll the last run, because the command does not wait."""
        deadline = time.monotonic() + seconds
        while True:
            found = self._last_test()
            left = deadline - time.monotonic()
            if found["state"] != "running" or left <= 0:
                return found
            time.sleep(min(_PAUSE, left))

    def test_runs(self) -> list[Object]:
        return [self.test_run()]

    def _last_test(self) -> Object:
        reason = None
        try:
            text = self._commands.query("vipu-admin", "test", "cluster", "--status")
        except VipuError as error:
            text, reason = error.details, error.message
            if "No results available" not in reason and "Showing test results" not in text:
                raise
        return _read(lambda printed: cli_tests.status(printed, reason), text, "the results of the cluster test")

    def stop_test(self, run: Object) -> None:
        self._commands.query("vipu-admin", "test", "cluster", "--stop")

    def partition_status(self, id: str) -> Object:
        statuses = self.partition_statuses([id])
        if id not in statuses:
            raise VipuError(
                "Cannot get the status of partition '%s': it does not exist. Create it first." % id, "NOT_FOUND"
            )
        return statuses[id]

    def partition_statuses(self, ids: t.Sequence[str]) -> dict[str, Object]:
        """Return states from the list of partitions, and causes of states other than ACTIVE from ``get partition``."""
        states = {item["id"]: item.get("state") for item in self.read("partition") if item["id"] in ids}
        behind = [id for id, state in states.items() if state != "ACTIVE"]
        facts = {id: facts for id, (facts, _ipus) in self._partition_blocks(behind).items()}
        return {id: {"id": id, "state": state, **cli_objects.status(facts.get(id, {}))} for id, state in states.items()}

    def partition_details(self, ids: t.Sequence[str]) -> dict[str, Object]:
        found = {}
        for id, (facts, ipus) in self._partition_blocks(ids).items():
            with contextlib.suppress(ValueError):  # unknown output format
                found[id] = cli_objects.partition(id, facts, ipus)
        return found

    def _partition_blocks(self, ids: t.Sequence[str]) -> dict[str, tuple[cli_output.Row, list[cli_output.Row]]]:
        """Return the output of ``get partition`` by id, without partitions whose output is unreadable.

        The output format is not documented and nothing depends on it, so that is not an error.
        """

        def block(id: str) -> tuple[cli_output.Row, list[cli_output.Row]]:
            try:
                text = self._commands.query("vipu", "get", "partition", cli_objects.name("partition", id))
                return cli_output.block(text, "partition", "segment")
            except ValueError:
                return {}, []
            except VipuError as error:
                if error.code != "FAILED":  # no such command, or the partition is gone
                    raise
                return {}, []

        blocks = self._commands.parallel(*(partial(block, id) for id in ids))
        return {id: block for id, block in zip(ids, blocks, strict=True) if block[0]}

    def reset_partition(self, id: str, relocatable: bool) -> None:
        if relocatable:
            raise VipuError(
                "Cannot reset partition '%s' with relocatable over the command line: it has no flag for it. Omit "
                "relocatable or use transport grpc." % id,
                "UNIMPLEMENTED",
            )
        try:
            self._commands.change("vipu", "reset", "partition", cli_objects.name("partition", id))
        except VipuError:
            # The command waits, as on creation.
            if not _is_behind(self._partition(id)):
                raise

    def drain_agent(self, id: str, reason: str, force: bool, validate_only: bool) -> Object:
        raise VipuError(
            "Cannot drain agent '%s' over the command line: Graphcore's vipu-admin has no such command. Use transport "
            "grpc." % id,
            "UNIMPLEMENTED",
        )

    def ipuof_config(self, id: str) -> list[Object]:
        found = next((item for item in self.read("partition") if item["id"] == id), None)
        if found is None:
            raise VipuError(
                "Cannot get the IPUoF configuration of partition '%s': it does not exist. Create it first." % id,
                "NOT_FOUND",
            )
        if not found.get("num_gcds"):
            raise VipuError(
                "Cannot get the IPUoF configuration of partition '%s': the list of partitions does not contain its "
                "number of GCDs. Use transport: grpc." % id,
                "UNREADABLE",
            )
        return self._commands.parallel(*(partial(self._gcd_config, id, gcd) for gcd in range(found["num_gcds"])))

    def _gcd_config(self, id: str, gcd: int) -> Object:
        text = self._commands.query(
            "vipu", "get", "partition", cli_objects.name("partition", id), "--gcd", str(gcd), "--ipuof-configs"
        )
        return _read(cli_output.ipuof_config, text, "the IPUoF configuration of partition '%s'" % id)

    def ipu_attributes(self) -> dict[str, dict[int, dict[str, str]]]:
        return _read(
            cli_output.ipu_attributes, self._commands.query("vipu", "list", "ipu-attrs"), "the IPUs' attributes"
        )

    def fits(self, allocation: str, sizes: list[int]) -> dict[int, int]:
        raise VipuError(
            "Cannot count the partitions that fit in an allocation over the command line. Use transport grpc, or omit "
            "fits.",
            "UNIMPLEMENTED",
        )

    def discovered(self) -> list[Object]:
        agents, text = self._commands.parallel(
            partial(self.read, "agent"), partial(self._commands.query, "vipu-admin", "discover", "agent")
        )
        known = {(agent.get("host"), agent.get("port")): agent["id"] for agent in t.cast("list[Object]", agents)}
        subject = "the discovered agents"
        rows: list[cli_output.Row] = _read(lambda text: cli_output.table(text, "host"), text, subject)
        found = [_read(cli_objects.discovered, row, subject) for row in rows]
        return [{**item, "agent": known.get((item["host"], item["port"]))} for item in found]

    def access_key(self, user: str) -> str | None:
        return self._access_keys.get(user)

    def of_users(self, connection: Connection) -> Connection:
        return connection

    def issued(self, user: str) -> tuple[str, str] | None:
        return self._issued.get(user)

    def certificates(self, user: str) -> Object:
        raise _no_certificates(user)

    def issue_certificate(self, user: str, signing_request: bytes) -> str:
        raise _no_certificates(user)

    def revoke_certificate(self, user: str, key: str) -> None:
        raise _no_certificates(user)


def _no_certificates(user: str) -> VipuError:
    return VipuError(
        "Cannot manage certificates of user '%s' over the command line. Use transport grpc, or omit certificate and "
        "revoked_certificates." % user,
        "UNIMPLEMENTED",
    )


def _read(reader: t.Callable[[t.Any], _T], printed: t.Any, subject: str) -> _T:
    """Parse the output of a command. Raises VipuError."""
    try:
        return reader(printed)
    except ValueError as error:
        raise VipuError(
            "Cannot read %s from the output of the command: %s. Check that the command and the controller are of the "
            "same release." % (subject, error),
            "UNREADABLE",
        ) from None


def _is_behind(partition: Object | None) -> bool:
    """Return whether a partition exists in another state than ACTIVE."""
    return partition is not None and partition.get("state") not in (None, "ACTIVE")


def _key(step: Step) -> tuple[str, str]:
    return step.family.kind, step.key


def _not_tried(steps: t.Iterable[Step], errors: list[ItemError]) -> list[ItemError]:
    """Return errors for the steps without one, caused by the first error."""
    failed = {(error.kind, error.key) for error in errors}
    rest = {_key(step): step for step in steps if _key(step) not in failed}
    message = "Not tried, because an earlier step failed: %s" % errors[0].message
    return [ItemError.of(step, message, Failure.NOT_TRIED, errors[0].error_code) for step in rest.values()]
