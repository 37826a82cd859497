# SPDX-License-Identifier: GPL-3.0-or-later
"""The public user API.

Methods take a request and a ``Caller`` and return a reply. They raise RuleError or StoreError, which
``api.guard`` converts to a status.
"""

from __future__ import annotations

from typing import NoReturn

import structlog

from openipu.shared.vipu.contract import virmgrpc
from openipu.vipu.api import convert as messages
from openipu.vipu.api.auth import Caller
from openipu.vipu.api.convert import Message
from openipu.vipu.api.methods import reads_agents, waits_for_agents
from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleError, RuleViolation, missing_or_hidden, quoted
from openipu.vipu.domain.model import Change, Kind, Partition, Put, ReadyState, sorted_by_id
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import check_id
from openipu.vipu.lifecycle.interface import Lifecycle
from openipu.vipu.storage.writer import RecordWriter

_log = structlog.get_logger("openipu.vipu.api.public")

_PARTITION_KEY = b"\x0a"  # field 1, length-delimited: ListPartitionsReply.partitions


class VersionService:
    """Release of the controller, readable without credentials."""

    def __init__(self, version: str) -> None:
        self._version = version

    def GetVersion(self, request: Message, caller: Caller) -> Message:
        """Return the release of this controller."""
        return virmgrpc.VersionReply(version=self._version)


class UserService:
    """Partitions and IPU attributes, for users of allocations and administrators."""

    def __init__(self, controller: RecordWriter, lifecycle: Lifecycle, max_retries: int) -> None:
        """Serve the user API. ``max_retries``: limit of automatic resets for new partitions."""
        self._controller = controller
        self._lifecycle = lifecycle
        self._max_retries = max_retries
        self._encoded: dict[str, tuple[Partition, bytes]] = {}

    def ListPartitions(self, request: Message, caller: Caller) -> bytes:
        """Return all partitions that the caller may use, sorted by id, as an encoded reply."""
        allocation = request.allocation_id
        partitions = self._controller.state.partitions
        found = sorted_by_id(partitions)
        if allocation:
            found = [partition for partition in found if partition.allocation == allocation]
        if caller.allowed is not None:
            found = [partition for partition in found if partition.allocation in caller.allowed]
        encoded = self._encoded
        if len(encoded) > 2 * len(partitions) + 100:
            self._encoded = encoded = {}
        parts = []
        for partition in found:
            entry = encoded.get(partition.id)
            if entry is None or entry[0] is not partition:
                data = messages.partition_message(partition).SerializeToString()
                encoded[partition.id] = entry = (partition, _PARTITION_KEY + _varint(len(data)) + data)
            parts.append(entry[1])
        return b"".join(parts)

    def CreatePartition(self, request: Message, caller: Caller) -> Message:
        """Create the record of a partition. Its machines are configured afterwards."""
        spec = messages.partition_spec(request)

        def command(state: State) -> tuple[list[Change], list[Change]]:
            lifecycle = self._lifecycle
            context = Context(
                lifecycle.unavailable(),
                caller.allowed,
                self._max_retries,
                cluster_under_test=lifecycle.cluster_under_test(),
                quarantined=lifecycle.quarantined(),
            )
            changes = rules.create(state, spec, context)
            return changes, changes

        for change in self._controller.submit(command).result():
            if not spec.allocation and isinstance(change, Put) and isinstance(change.record, Partition):
                chosen = change.record.allocation
                _log.info("allocation chosen", partition=spec.id, allocation=chosen, user=caller.user)
        return virmgrpc.CreatePartitionReply(partition_id=spec.id)

    @waits_for_agents
    def RemovePartition(self, request: Message, caller: Caller) -> Message:
        """Remove a partition and return when its IPUs are free."""
        _check_id("remove", request.partition_id)
        self._lifecycle.remove_partition(request.partition_id, request.force, caller.allowed).result()
        return virmgrpc.RemovePartitionReply()

    def ResetPartition(self, request: Message, caller: Caller) -> Message:
        """Start the reset of a partition."""
        _check_id("reset", request.partition_id)
        self._lifecycle.reset_partition(request.partition_id, request.relocatable, caller.allowed).result()
        return virmgrpc.ResetPartitionReply()

    def GetPartitionStatus(self, request: Message, caller: Caller) -> Message:
        """Return the status of a partition."""
        partition = self._partition("get the status of", request.partition_id, caller)
        return virmgrpc.GetPartitionStatusReply(status=messages.status_message(partition))

    def GetPartitionIpuofConfig(self, request: Message, caller: Caller) -> Message:
        """Return the IPUoF configuration of a partition, for one GCD or all of them."""
        verb = "get the IPUoF configuration of"
        partition = self._partition(verb, request.partition_id, caller)
        gcds = list(range(partition.num_gcds))
        if request.HasField("gcd_id"):
            if request.gcd_id.id not in gcds:
                reason = f"there is no GCD {request.gcd_id.id}; it has {partition.num_gcds}, counted from 0"
                _reject(Code.INVALID_ARGUMENT, verb, partition.id, reason)
            gcds = [request.gcd_id.id]
        if partition.ready is not ReadyState.ACTIVE or not partition.devices:
            reason = f"it is {partition.ready.name}, not ACTIVE"
            _reject(Code.FAILED_PRECONDITION, verb, partition.id, "; ".join([reason, *partition.errors]).rstrip("."))
        return virmgrpc.GetPartitionIpuofConfigReply(ipuof_config=messages.ipuof_config(partition, gcds))

    @reads_agents
    def ListIPUAttributes(self, request: Message, caller: Caller) -> Message:
        """Return the attributes of all IPUs of some agents, or of all agents that the caller may use.

        Agents that do not respond are omitted.
        """
        with self._controller.reading() as state:
            usable = dict.fromkeys(
                id
                for id in sorted(state.agents)
                if caller.allowed is None or state.allocation_of.get(id) in caller.allowed
            )
            out_of_service = set(state.out_of_service)
        agents = list(dict.fromkeys(request.agents) or usable)
        for id in agents:
            if id not in usable:
                reason = missing_or_hidden(Kind.AGENT, id, Context(allowed=caller.allowed)).reason
                raise RuleError(Code.NOT_FOUND, f"Cannot list IPU attributes: {reason}.")
        reported = self._lifecycle.ipu_attributes(agents).result()
        reply = virmgrpc.ListIPUAttributesReply()
        for id in agents:
            if id in reported:
                entry = reply.entries.add(agent=id)
                for ipu, attributes in reported[id].items():
                    service = {"service state": "out of service"} if id in out_of_service else {}
                    entry.ipu_attributes[ipu].attributes.update({**attributes, **service})
        return reply

    def _partition(self, verb: str, id: str, caller: Caller) -> Partition:
        _check_id(verb, id)
        context = Context(allowed=caller.allowed)
        partition = self._controller.state.partitions.get(id)
        if partition is None or not context.may_use(partition.allocation):
            _reject(Code.NOT_FOUND, verb, id, missing_or_hidden(Kind.PARTITION, id, context).reason)
        return partition


def _check_id(verb: str, id: str) -> None:
    try:
        check_id(Kind.PARTITION, id)
    except RuleViolation as violation:
        _reject(violation.code, verb, id, violation.reason)


def _reject(code: Code, verb: str, id: str, reason: str) -> NoReturn:
    raise RuleError(code, f"Cannot {verb} partition {quoted(id)}: {reason}.")


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
