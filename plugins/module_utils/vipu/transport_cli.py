# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way over the command lines vipu-admin and vipu, for what Graphcore's controller offers no API for.

Only documented flags are given and only documented outputs are read. There is no transaction here:
what no command can do is refused before the first one runs; then the commands run one by one in the
order in which objects depend on each other, the first that fails ends the run, and what comes after
it is reported as not tried.
"""

from __future__ import annotations

import contextlib
import time
import typing as t
from functools import partial

from ..reconcile import Action, Failure, ItemError, Object, Step
from . import cli_objects, cli_output, cli_tests
from .cli_process import Commands
from .client import Connection, VipuError
from .test_table import FLAGS

_CREATE_ORDER = ("agent", "cluster", "allocation", "partition", "user")
_REMOVE_ORDER = ("partition", "allocation", "cluster", "agent", "user")
_REMOVING = (Action.DELETE, Action.RECREATE)
# What tenants do too is done with their command.
_OF_TENANTS = ("partition", "allocation")

_PAUSE = 1.0  # seconds between two looks at a test: each is a process
_T = t.TypeVar("_T")


class _Work(t.NamedTuple):
    """One command of a batch: the step that it belongs to, and the flags of ``create``; None to remove."""

    step: Step
    flags: list[str] | None


class CliTransport:
    """See transport.Transport."""

    def __init__(self, connection: Connection, vipu_admin: str, vipu: str) -> None:
        self._commands = Commands(connection, vipu_admin, vipu)
        self._access_keys: dict[str, str] = {}

    def close(self) -> None:
        self._commands.close()

    def version(self) -> str:
        return _read(cli_output.server_version, self._commands.ask("vipu", "--server-version"), "the version")

    def read(self, kind: str) -> list[Object]:
        rows = self._list(kind)
        if kind == "agent" and any("host" not in row for row in rows):
            rows = self._commands.at_once(*(partial(self._facts, row) for row in rows))
        what = "the list of %ss" % kind
        return [_read(partial(cli_objects.item, kind), row, what) for row in rows]

    def read_all(self, kinds: t.Sequence[str]) -> dict[str, list[Object]]:
        return dict(zip(kinds, self._commands.at_once(*(partial(self.read, kind) for kind in kinds)), strict=True))

    def _list(self, kind: str) -> list[cli_output.Row]:
        command = "vipu" if kind in _OF_TENANTS else "vipu-admin"
        text = self._commands.ask(command, "list", kind + "s")
        return _read(lambda text: cli_output.table(text, *cli_objects.KEYS[kind]), text, "the list of %ss" % kind)

    def _facts(self, row: cli_output.Row) -> cli_output.Row:
        """A row of the list of agents with what ``get agent`` tells, for releases that list little."""
        id = cli_objects.name("agent", cli_output.pick(row, *cli_objects.KEYS["agent"]) or "")
        text = self._commands.ask("vipu-admin", "get", "agent", id)
        what = "what is told of agent '%s'" % id
        return {**row, **_read(partial(cli_output.block, noun="agent", key="ipu"), text, what)[0]}

    def write(self, steps: list[Step], force: bool) -> list[ItemError]:
        removals = [_Work(step, None) for step in steps if step.action in _REMOVING]
        removals.sort(key=lambda work: _REMOVE_ORDER.index(work.step.family.kind))
        creations, errors = [], []
        for step in sorted(steps, key=lambda step: _CREATE_ORDER.index(step.family.kind)):
            try:
                cli_objects.name(step.family.kind, step.key)
                if step.wanted is not None:
                    creations.append(_Work(step, _creation(step)))
            except VipuError as error:
                errors.append(ItemError.of(step, error.sentence))
        if errors:
            return errors + _not_tried(steps, errors)
        return self._carry_out([*removals, *creations], force)

    def foretell(self, steps: list[Step], force: bool) -> list[ItemError]:
        """There is no command for that."""
        return []

    def _carry_out(self, batch: list[_Work], force: bool) -> list[ItemError]:
        for index, (step, flags) in enumerate(batch):
            try:
                if flags is None:
                    self._remove(step.family.kind, step.key, force)
                else:
                    self._create(step.family.kind, step.key, flags)
            except VipuError as error:
                removed = [_key(work.step) for work in batch[:index] if work.flags is None]
                left = [work.step for work in batch[index:]]
                errors = [] if _key(step) in removed else [ItemError.of(step, error.sentence)]
                halves = [half for half in left if _key(half) in removed]
                errors += [ItemError.of(half, error.sentence, Failure.HALF_DONE) for half in halves]
                return errors + _not_tried(left, errors)
        return []

    def _remove(self, kind: str, key: str, force: bool) -> None:
        command = "vipu" if kind in _OF_TENANTS[:1] else "vipu-admin"
        self._commands.act(command, "remove", kind, key, *(["--force"] if force else []))

    def _create(self, kind: str, key: str, flags: list[str]) -> None:
        if kind == "partition":
            try:
                self._commands.act("vipu", "create", "partition", key, *flags)
            except VipuError:
                # The command waits until the partition is ACTIVE. When it does not become so, or not in
                # time, it is there all the same; whether that is good enough is for the task to say.
                if self._state(key) in (None, "ACTIVE"):
                    raise
            return
        text = self._commands.act("vipu-admin", "create", kind, key, *flags)
        if kind == "user":
            access_key = cli_output.access_key(text)
            if access_key is None:
                raise VipuError(
                    "User '%s' is there, but the command has not told its access key, which is not told again: "
                    "remove the user, and look at what 'vipu-admin create user' prints." % key,
                    "UNREADABLE",
                )
            self._access_keys[key] = access_key

    def _state(self, id: str) -> str | None:
        """The state of a partition; None when it is not there or nobody can tell."""
        try:
            return next((item.get("state") for item in self.read("partition") if item["id"] == id), None)
        except VipuError:
            return None

    def start_test(self, cluster: str, tests: t.Sequence[str]) -> Object:
        flags = [FLAGS[test] for test in tests]
        self._commands.ask("vipu-admin", "test", "cluster", cli_objects.name("cluster", cluster), *flags, "--start")
        return self.test_run()

    def test_run(self, known: int = 0, seconds: float = 0.0) -> Object:
        """The command does not wait, so this asks for as long again and again."""
        deadline = time.monotonic() + seconds
        while True:
            found = self._last_test()
            left = deadline - time.monotonic()
            if found["state"] != "running" or left <= 0:
                return found
            time.sleep(min(_PAUSE, left))

    def _last_test(self) -> Object:
        reason = None
        try:
            text = self._commands.ask("vipu-admin", "test", "cluster", "--status")
        except VipuError as error:
            text, reason = error.details, error.sentence
            if "No results available" not in reason and "Showing test results" not in text:
                raise
        return _read(lambda printed: cli_tests.status(printed, reason), text, "the results of the cluster test")

    def stop_test(self, run: Object) -> None:
        self._commands.ask("vipu-admin", "test", "cluster", "--stop")

    def partition_status(self, id: str) -> Object:
        statuses = self.partition_statuses([id])
        if id not in statuses:
            raise VipuError("Cannot get the status of partition '%s': it does not exist." % id, "NOT_FOUND")
        return statuses[id]

    def partition_statuses(self, ids: t.Sequence[str]) -> dict[str, Object]:
        """The list of partitions tells the state, and ``get partition`` why one is not ACTIVE, where it does so."""
        states = {item["id"]: item.get("state") for item in self.read("partition") if item["id"] in ids}
        behind = [id for id, state in states.items() if state != "ACTIVE"]
        told = {id: facts for id, (facts, _ipus) in self._partition_blocks(behind).items()}
        return {id: {"id": id, "state": state, **cli_objects.status(told.get(id, {}))} for id, state in states.items()}

    def partition_details(self, ids: t.Sequence[str]) -> dict[str, Object]:
        found = {}
        for id, (facts, ipus) in self._partition_blocks(ids).items():
            with contextlib.suppress(ValueError):  # of another form: then it is not known
                found[id] = cli_objects.partition(id, facts, ipus)
        return found

    def _partition_blocks(self, ids: t.Sequence[str]) -> dict[str, tuple[cli_output.Row, list[cli_output.Row]]]:
        """What ``get partition`` prints, by id; without those of which it says nothing that can be read.

        Its form is not documented, and nothing is done for what is missing in it: so that is no error.
        """

        def block(id: str) -> tuple[cli_output.Row, list[cli_output.Row]]:
            try:
                text = self._commands.ask("vipu", "get", "partition", cli_objects.name("partition", id))
                return cli_output.block(text, "partition", "segment")
            except ValueError:
                return {}, []
            except VipuError as error:
                if error.code != "FAILED":  # no such command, or the partition is gone
                    raise
                return {}, []

        blocks = self._commands.at_once(*(partial(block, id) for id in ids))
        return {id: block for id, block in zip(ids, blocks, strict=True) if block[0]}

    def reset_partition(self, id: str, relocatable: bool) -> None:
        if relocatable:
            raise VipuError(
                "Cannot reset partition '%s' with relocatable over the command line: it has no flag for it; leave "
                "that out, or use transport grpc." % id,
                "UNIMPLEMENTED",
            )
        try:
            self._commands.act("vipu", "reset", "partition", cli_objects.name("partition", id))
        except VipuError:
            # As with creation, the command waits.
            if self._state(id) in (None, "ACTIVE"):
                raise

    def ipuof_config(self, id: str) -> list[Object]:
        found = next((item for item in self.read("partition") if item["id"] == id), None)
        if found is None:
            raise VipuError(
                "Cannot get the IPUoF configuration of partition '%s': it does not exist." % id, "NOT_FOUND"
            )
        if not found.get("num_gcds"):
            raise VipuError(
                "Cannot get the IPUoF configuration of partition '%s': the list of partitions does not tell its "
                "number of GCDs." % id,
                "UNREADABLE",
            )
        return self._commands.at_once(*(partial(self._gcd_config, id, gcd) for gcd in range(found["num_gcds"])))

    def _gcd_config(self, id: str, gcd: int) -> Object:
        text = self._commands.ask(
            "vipu", "get", "partition", cli_objects.name("partition", id), "--gcd", str(gcd), "--ipuof-configs"
        )
        return _read(cli_output.ipuof_config, text, "the IPUoF configuration of partition '%s'" % id)

    def ipu_attributes(self) -> dict[str, dict[int, dict[str, str]]]:
        return _read(cli_output.ipu_attributes, self._commands.ask("vipu", "list", "ipu-attrs"), "the IPUs' attributes")

    def fits(self, allocation: str, sizes: list[int]) -> dict[int, int]:
        raise VipuError(
            "The command line cannot tell what fits into an allocation: use transport grpc, or leave fits out.",
            "UNIMPLEMENTED",
        )

    def discovered(self) -> list[Object]:
        agents, text = self._commands.at_once(
            partial(self.read, "agent"), partial(self._commands.ask, "vipu-admin", "discover", "agent")
        )
        known = {(agent.get("host"), agent.get("port")): agent["id"] for agent in t.cast("list[Object]", agents)}
        what = "the discovered agents"
        rows: list[cli_output.Row] = _read(lambda text: cli_output.table(text, "host"), text, what)
        heard = [_read(cli_objects.discovered, row, what) for row in rows]
        return [{**item, "agent": known.get((item["host"], item["port"]))} for item in heard]

    def access_key(self, user: str) -> str | None:
        return self._access_keys.get(user)


def _read(reader: t.Callable[[t.Any], _T], printed: t.Any, what: str) -> _T:
    """What a command has printed, as something to work with; raises VipuError."""
    try:
        return reader(printed)
    except ValueError as error:
        raise VipuError(
            "Cannot read %s that the command has printed: %s. Check that the command and the controller are of the "
            "same release." % (what, error),
            "UNREADABLE",
        ) from None


def _creation(step: Step) -> list[str]:
    """The flags that create what the step wants; raises VipuError."""
    if step.action is Action.CHANGE:
        raise VipuError(
            "Cannot change %s '%s' over the command line: it has no command for that; remove it first, or use "
            "transport grpc." % (step.family.kind, step.key),
            "UNIMPLEMENTED",
        )
    return cli_objects.flags(step.family.kind, step.whole)


def _key(step: Step) -> tuple[str, str]:
    return step.family.kind, step.key


def _not_tried(steps: t.Iterable[Step], errors: list[ItemError]) -> list[ItemError]:
    """The steps that have no error yet, because of the first that there is."""
    named = {(error.kind, error.key) for error in errors}
    rest = {_key(step): step for step in steps if _key(step) not in named}
    sentence = "Not tried, because something before it failed: %s" % errors[0].sentence
    return [ItemError.of(step, sentence, Failure.NOT_TRIED) for step in rest.values()]
