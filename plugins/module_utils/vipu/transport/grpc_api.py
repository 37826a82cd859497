# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transport over gRPC: the openipu admin API in one batch call, partitions over the public API as well."""

from __future__ import annotations

import typing as t

from ...errors import ERRORS
from ...reconcile import OBJECTS_NOT_WRITTEN, Action, Failure, ItemError, Object, Step
from .. import ipuof, objects
from ..client import REMOVAL_SECONDS, Client, Connection, VipuError, partition_status
from ..cluster_test.table import DEFAULT
from ..contract import admin, virmgrpc
from ..names import CLUSTER_TEST, CLUSTER_TOPOLOGY, KIND, TOPOLOGY
from .repeated import is_unknown, repeat, with_moved

_T = t.TypeVar("_T")
# Only administrators may apply batches, and Graphcore's controller does not support them.
# Both cases still allow single partitions.
_NO_BATCHES = ("UNIMPLEMENTED", "PERMISSION_DENIED")
# Further calls would fail in the same way after the same timeout.
_NO_RESPONSE = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "UNAUTHENTICATED")
_REMOVING = (Action.DELETE, Action.RECREATE)
_INVALID_ARGUMENT = 3  # this and the next are numbers of gRPC status codes
_NOT_FOUND = 5
_ALREADY_EXISTS = 6
_REJECTIONS = range(3, 10)  # status codes with a code of errors of their own
_MOST_NAMED = 100  # partitions named in a request; above that, all are requested


class GrpcTransport:
    """Transport over gRPC."""

    def __init__(self, connection: Connection) -> None:
        self._client = Client(connection)
        self._access_keys: dict[str, str] = {}
        self._user_endpoint = admin.UserEndpoint()

    def close(self) -> None:
        self._client.close()

    def version(self) -> str:
        reply = self._client.call(self._client.version.GetVersion, virmgrpc.VersionRequest(), "get the version")
        return str(reply.version)

    def read(self, kind: str) -> list[Object]:
        client = self._client
        if kind == "agent":
            reply = client.call(client.admin.ListAgents, admin.ListAgentsRequest(), "list agents")
            return [objects.agent(item) for item in reply.agents]
        if kind == "cluster":
            reply = client.call(client.admin.ListClusters, admin.ListClustersRequest(), "list clusters")
            return [objects.cluster(item) for item in reply.clusters]
        if kind == "allocation":
            reply = client.call(client.tenant.ListAllocations, admin.ListAllocationsRequest(), "list allocations")
            return [objects.allocation(item) for item in reply.allocations]
        if kind == "user":
            reply = client.call(client.admin.ListUsers, admin.ListUsersRequest(), "list users")
            return [objects.user(item) for item in reply.users]
        reply = client.call(client.user.ListPartitions, virmgrpc.ListPartitionsRequest(), "list partitions")
        return [objects.partition(item) for item in reply.partitions]

    def read_all(self, kinds: t.Sequence[str]) -> dict[str, list[Object]]:
        return {kind: self.read(kind) for kind in kinds}

    def write(self, steps: list[Step], force: bool) -> list[ItemError]:
        partitions_only = all(step.family.kind == "partition" for step in steps)
        if partitions_only and len(steps) == 1 and steps[0].action is not Action.RECREATE:
            return self._write_partitions(steps, force)
        try:
            return self._apply(steps, force)
        except VipuError as error:
            if partitions_only and error.code in _NO_BATCHES:
                return self._write_partitions(steps, force)
            raise

    def validate(self, steps: list[Step], force: bool) -> list[ItemError]:
        try:
            return self._apply(steps, force, validate_only=True)
        except VipuError as error:
            if error.code in _NO_BATCHES:
                return []
            raise

    def _apply(self, steps: list[Step], force: bool, validate_only: bool = False) -> list[ItemError]:
        """Apply all steps in one transaction: an error in one step leaves everything unchanged."""
        request = admin.ApplyRequest(validate_only=validate_only)
        for step in steps:
            if step.action in _REMOVING:
                request.removals.add(kind=KIND.number(step.family.kind), id=step.key, force=force)
            if step.desired is not None:
                try:
                    _ADD[step.family.kind](request, step.full_object)
                except ValueError as error:
                    return _rejected(steps, [_invalid_value(step, error)])
        try:
            reply = self._client.call(self._client.admin.Apply, request, "apply the batch")
        except VipuError as error:
            if not is_unknown(self._client, error):
                raise
            return [ItemError.of(step, error.message, Failure.FAILED, error.error_code, unknown=True) for step in steps]
        self._access_keys.update(reply.access_keys)
        self._user_endpoint = reply.user_endpoint
        if reply.applied and not validate_only:
            return _not_taken_over(steps, reply.results) + _created_by_others(steps, reply.results)
        return _rejected(
            steps,
            [
                ItemError(
                    KIND.text(result.kind),
                    result.id,
                    result.error,
                    Failure.MISSING if validate_only and result.code == _NOT_FOUND else Failure.REJECTED,
                    _error_code(result.code),
                )
                for result in reply.results
                if result.outcome == admin.OUTCOME_FAILED
            ],
        )

    def _write_partitions(self, steps: list[Step], force: bool) -> list[ItemError]:
        """Write partitions one by one, removals first to free their IPUs."""
        errors: list[ItemError] = []
        ordered = sorted(steps, key=lambda step: step.action not in _REMOVING)
        for index, step in enumerate(ordered, 1):
            failure = Failure.REJECTED
            try:
                if step.action in _REMOVING:
                    self._remove_partition(step.key, force)
                    failure = Failure.HALF_DONE
                if step.action is Action.CHANGE:
                    self._change_partition(step)
                elif step.desired is not None:
                    self._create_partition(step)
            except ValueError as error:
                errors.append(_invalid_value(step, error, failure))
            except VipuError as error:
                unknown = is_unknown(self._client, error)
                errors.append(ItemError.of(step, error.message, failure, error.error_code, unknown))
                if error.code in _NO_RESPONSE or unknown:
                    return errors + _not_tried(ordered[index:], "Not tried: %s" % error.message, error.error_code)
        return errors

    def _remove_partition(self, id: str, force: bool) -> None:
        request = virmgrpc.RemovePartitionRequest(partition_id=id, force=force)
        timeout = max(self._client.connection.timeout, REMOVAL_SECONDS)
        self._client.call(self._client.user.RemovePartition, request, "remove partition '%s'" % id, timeout)

    def _create_partition(self, step: Step) -> None:
        request = virmgrpc.CreatePartitionRequest(**objects.partition_creation(step.full_object))
        self._client.call(self._client.user.CreatePartition, request, "create partition '%s'" % step.key)

    def _change_partition(self, step: Step) -> None:
        """Set the request options, the only fields of a partition that are not immutable."""
        options = objects.partition_request_options(step.full_object)
        request = admin.SetPartitionOptionsRequest(partition_id=step.key, **options)
        self._client.call(self._client.tenant.SetPartitionOptions, request, "change partition '%s'" % step.key)

    def issued(self, user: str) -> tuple[str, str] | None:
        return None

    def certificates(self, user: str) -> Object:
        request = admin.ListCertificatesRequest(user_id=user)
        reply = self._client.call(self._client.admin.ListCertificates, request, "list certificates of user '%s'" % user)
        return {"certificates": [objects.certificate(each) for each in reply.certificates], "required": reply.required}

    def issue_certificate(self, user: str, signing_request: bytes) -> str:
        request = admin.AddCertificateRequest(user_id=user, signing_request=signing_request)
        action = "issue a certificate for user '%s'" % user
        # A later certificate of the same key replaces the earlier one.
        reply = self._call_again(lambda: self._client.call(self._client.admin.AddCertificate, request, action))
        return str(reply.certificate.decode())

    def revoke_certificate(self, user: str, key: str) -> None:
        request = admin.RevokeCertificateRequest(user_id=user, key=key)
        action = "revoke a certificate of user '%s'" % user
        self._call_again(lambda: self._client.call(self._client.admin.RevokeCertificate, request, action))

    def start_test(self, cluster: str, tests: t.Sequence[str]) -> Object:
        numbers = [CLUSTER_TEST.number(test) for test in tests]
        request = admin.StartClusterTestRequest(cluster_id=cluster, tests=numbers)
        before = self.test_run()["run_id"] if self._has_several() else None

        def start() -> Object:
            reply = self._client.call(self._client.admin.StartClusterTest, request, "test cluster '%s'" % cluster)
            return objects.test_run(reply.run)

        def started() -> Object | None:
            """Return the run of an earlier attempt. The next leader has none."""
            run = self.test_run()
            is_new = run["run_id"] not in (None, before)
            same = run["cluster"] == cluster and set(run["requested"]) == set(tests or DEFAULT)
            return run if is_new and same else None

        return repeat(self._client, start, started)[0]

    def test_run(self, known: int = 0, seconds: float = 0.0) -> Object:
        request = admin.GetClusterTestRequest(known_results=known, wait_milliseconds=int(seconds * 1000))
        timeout = self._client.connection.timeout + seconds
        call = self._client.admin.GetClusterTest
        return objects.test_run(self._client.call(call, request, "get the last cluster test", timeout).run)

    def test_runs(self) -> list[Object]:
        request = admin.GetClusterTestRequest(every_cluster=True)
        reply = self._client.call(self._client.admin.GetClusterTest, request, "get the last cluster tests")
        return [objects.test_run(run) for run in (reply.run, *reply.others)]

    def stop_test(self, run: Object) -> None:
        request = admin.StopClusterTestRequest(run_id=run["run_id"])

        def stopped() -> bool | None:
            """Return True when the run has ended, also with its controller."""
            last = self.test_run()
            return None if last["run_id"] == run["run_id"] and last["state"] == "running" else True

        def stop() -> bool:
            self._client.call(self._client.admin.StopClusterTest, request, "stop the cluster test")
            return True

        repeat(self._client, stop, stopped)

    def partition_details(self, ids: t.Sequence[str]) -> dict[str, Object]:
        if not ids:
            return {}
        request = admin.ListPartitionOptionsRequest(partition_ids=ids if len(ids) <= _MOST_NAMED else ())
        try:
            reply = self._client.call(self._client.tenant.ListPartitionOptions, request, "list options of partitions")
        except VipuError as error:
            if error.code != "UNIMPLEMENTED":
                raise
            return {}
        return {item.partition_id: objects.partition_options(item) for item in reply.partitions}

    def partition_status(self, id: str) -> Object:
        return objects.status(partition_status(self._client, id))

    def partition_statuses(self, ids: t.Sequence[str]) -> dict[str, Object]:
        statuses = {}
        for id in ids:
            try:
                statuses[id] = self.partition_status(id)
            except VipuError as error:
                if error.code != "NOT_FOUND":  # removed after it was listed
                    raise
        return statuses

    def reset_partition(self, id: str, relocatable: bool) -> None:
        request = virmgrpc.ResetPartitionRequest(partition_id=id, relocatable=relocatable)
        call = self._client.user.ResetPartition
        self._call_again(lambda: self._client.call(call, request, "reset partition '%s'" % id))

    def drain_agent(self, id: str, reason: str, force: bool, validate_only: bool) -> Object:
        def drain(validate_only: bool) -> Object:
            request = admin.DrainAgentRequest(id=id, service_reason=reason, force=force, validate_only=validate_only)
            reply = self._client.call(self._client.admin.DrainAgent, request, "drain agent '%s'" % id)
            return {"changed": reply.changed, "partitions": [objects.drained(item) for item in reply.partitions]}

        if validate_only:
            return self._call_again(lambda: drain(True))
        # A later attempt does not report the partitions that an earlier one has moved.
        planned = self._call_again(lambda: drain(True)) if self._has_several() else None
        drained, again = repeat(self._client, lambda: drain(False))
        return with_moved(planned, drained, lambda: self.read("partition")) if planned and again else drained

    def _has_several(self) -> bool:
        """Return whether there are several controllers, of which the next one can lead."""
        return len(self._client.connection.addresses) > 1

    def _call_again(self, change: t.Callable[[], _T]) -> _T:
        """Make a change with the same effect when it is made twice, again if its result is unknown."""
        return repeat(self._client, change)[0]

    def ipuof_config(self, id: str) -> list[Object]:
        request = virmgrpc.GetPartitionIpuofConfigRequest(partition_id=id)
        action = "get the IPUoF configuration of partition '%s'" % id
        reply = self._client.call(self._client.user.GetPartitionIpuofConfig, request, action)
        return [ipuof.gcd_config(gcd) for gcd in reply.ipuof_config.gcd_configs]

    def ipu_attributes(self) -> dict[str, dict[int, dict[str, str]]]:
        request = virmgrpc.ListIPUAttributesRequest()
        reply = self._client.call(self._client.user.ListIPUAttributes, request, "list attributes of IPUs")
        return {
            entry.agent: {ipu: dict(attributes.attributes) for ipu, attributes in sorted(entry.ipu_attributes.items())}
            for entry in reply.entries
        }

    def fits(self, allocation: str, sizes: list[int]) -> dict[int, int]:
        request = admin.CountFitsRequest(allocation_id=allocation, sizes=sizes)
        reply = self._client.call(
            self._client.tenant.CountFits, request, "count the partitions that fit in allocation '%s'" % allocation
        )
        return {fit.size: fit.count for fit in reply.fits}

    def discovered(self) -> list[Object]:
        request = admin.ListDiscoveredAgentsRequest()
        reply = self._client.call(self._client.admin.ListDiscoveredAgents, request, "list discovered agents")
        return [objects.discovered(item) for item in reply.agents]

    def access_key(self, user: str) -> str | None:
        return self._access_keys.get(user)

    def of_users(self, connection: Connection) -> Connection:
        return connection.of_users(self._user_endpoint)


def _error_code(status: int) -> str:
    """Return the code of an item's error; ``status`` is its gRPC status code, 0 if there is none."""
    code = "OPU%d" % (600 + status)
    return code if status in _REJECTIONS and code in ERRORS else OBJECTS_NOT_WRITTEN


def _invalid_value(step: Step, error: ValueError, failure: Failure = Failure.REJECTED) -> ItemError:
    """Return the error of a value that the API cannot represent, such as a negative number."""
    message = "Cannot create %s '%s': %s." % (step.family.title, step.key, str(error).rstrip("."))
    return ItemError.of(step, message, failure, _error_code(_INVALID_ARGUMENT))


def _not_taken_over(steps: list[Step], results: t.Iterable[t.Any]) -> list[ItemError]:
    """Return one error per agent of an applied batch that is registered, but was not taken over."""
    records = {(step.family.kind, step.key) for step in steps if _changes_record(step)}
    errors = []
    for result in results:
        if result.outcome == admin.OUTCOME_FAILED:
            kind = KIND.text(result.kind)
            failure = Failure.INCOMPLETE if (kind, result.id) in records else Failure.FAILED
            errors.append(ItemError(kind, result.id, result.error, failure, _error_code(result.code)))
    return errors


def _changes_record(step: Step) -> bool:
    """Return whether a step changes the record of an object, not only the owner of an agent."""
    return step.before is None or [field.name for field in step.changed_fields] != ["take_over"]


def _created_by_others(steps: list[Step], results: t.Iterable[t.Any]) -> list[ItemError]:
    """Return one error per object of an applied batch that should be new, but that another client had created."""
    new = {(step.family.kind, step.key): step for step in steps if step.action is Action.CREATE}
    errors = []
    for result in results:
        step = new.get((KIND.text(result.kind), result.id))
        # Outcomes of an object that existed already, and their effect.
        existed = {admin.OUTCOME_UNCHANGED: Failure.REJECTED, admin.OUTCOME_CHANGED: Failure.HALF_DONE}
        failure = existed.get(result.outcome)
        if step and failure:
            message = "Cannot create %s '%s': another client created it at the same time. Run the task again."
            message %= (step.family.title, step.key)
            errors.append(ItemError(step.family.kind, step.key, message, failure, _error_code(_ALREADY_EXISTS)))
    return errors


def _rejected(steps: list[Step], errors: list[ItemError]) -> list[ItemError]:
    """Return the errors of a batch with one NOT_TRIED error for each other step; empty without errors."""
    if not errors:
        return []
    failed = {(error.kind, error.key) for error in errors}
    rest = [step for step in steps if (step.family.kind, step.key) not in failed]
    message = "Not applied because the batch was rejected: %s" % errors[0].message
    return errors + _not_tried(rest, message, errors[0].error_code)


def _not_tried(steps: list[Step], message: str, error_code: str) -> list[ItemError]:
    return [ItemError.of(step, message, Failure.NOT_TRIED, error_code) for step in steps]


_SERVICE = {None: 0, True: 1, False: 2}  # in_service -> number of ServiceState
_ADD: dict[str, t.Callable[[t.Any, Object], t.Any]] = {
    "agent": lambda request, desired: request.agents.add(
        id=desired["id"],
        host=desired.get("host") or "",
        port=desired.get("port") or 0,
        take_over=bool(desired.get("take_over")),
        service=_SERVICE[desired.get("in_service")],
        service_reason=desired.get("service_reason") or "",
    ),
    "cluster": lambda request, desired: request.clusters.add(
        id=desired["id"],
        agent_ids=desired.get("agents") or (),
        num_ilds=desired.get("num_ilds") or 0,
        ipu_link_topology=TOPOLOGY.number(desired.get("topology")),
        gw_link_topology=CLUSTER_TOPOLOGY.number(desired.get("cluster_topology")),
    ),
    "allocation": lambda request, desired: request.allocations.add(
        id=desired["id"],
        cluster_id=desired.get("cluster") or "",
        size=desired.get("size") or 0,
        agent_ids=desired.get("agents") or (),
    ),
    "partition": lambda request, desired: request.partitions.add(**objects.partition_creation(desired)),
    "user": lambda request, desired: request.users.add(**objects.user_fields(desired)),
}
