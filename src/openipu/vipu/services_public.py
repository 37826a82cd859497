# SPDX-License-Identifier: GPL-3.0-or-later
"""The public user API.

Methods take a request and a ``Caller`` and give a reply, or raise what ``services_guard`` turns into a
status: RuleError, StoreError.
"""

from __future__ import annotations

from typing import NoReturn

from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc

from openipu.vipu import rules
from openipu.vipu import services_messages as messages
from openipu.vipu.auth import Caller
from openipu.vipu.checks import Code, Context, Refused, RuleError, check_id, not_there, shown
from openipu.vipu.controller import Controller
from openipu.vipu.model import Change, Kind, Partition, Ready, State, in_order
from openipu.vipu.ports import Lifecycle
from openipu.vipu.services_guard import waits_for_agents
from openipu.vipu.services_messages import Message

_PARTITION_KEY = b"\x0a"  # field 1, length-delimited: ListPartitionsReply.partitions


class VersionService:
    """Tells the release; needs no user."""

    def __init__(self, version: str) -> None:
        """The version to tell."""
        self._version = version

    def GetVersion(self, request: Message, caller: Caller) -> Message:
        """The release of this controller."""
        return virmgrpc.VersionReply(version=self._version)


class UserService:
    """Partitions and attributes of IPUs, for the users of allocations and for administrators."""

    def __init__(self, controller: Controller, lifecycle: Lifecycle, max_retries: int) -> None:
        """``max_retries``: automatic resets that a new partition may have."""
        self._controller = controller
        self._lifecycle = lifecycle
        self._max_retries = max_retries
        self._encoded: dict[str, tuple[Partition, bytes]] = {}

    def ListPartitions(self, request: Message, caller: Caller) -> bytes:
        """All partitions that the caller may see, by id; the encoded reply."""
        allocation = request.allocation_id
        partitions = self._controller.state.partitions
        found = in_order(partitions)
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
        """Record a partition; it is made ready afterwards."""
        spec = messages.partition_spec(request.requirements, request.disable_auto_reset, request.relocatable)

        def command(state: State) -> tuple[list[Change], None]:
            lifecycle = self._lifecycle
            context = Context(
                lifecycle.unavailable(), caller.allowed, self._max_retries, under_test=lifecycle.under_test()
            )
            return rules.create(state, spec, context), None

        self._controller.submit(command).result()
        return virmgrpc.CreatePartitionReply(partition_id=spec.id)

    @waits_for_agents
    def RemovePartition(self, request: Message, caller: Caller) -> Message:
        """Remove a partition, and answer when its IPUs are free."""
        _check_id("remove", request.partition_id)
        self._lifecycle.remove_partition(request.partition_id, request.force, caller.allowed).result()
        return virmgrpc.RemovePartitionReply()

    def ResetPartition(self, request: Message, caller: Caller) -> Message:
        """Begin to reset a partition."""
        _check_id("reset", request.partition_id)
        self._lifecycle.reset_partition(request.partition_id, request.relocatable, caller.allowed).result()
        return virmgrpc.ResetPartitionReply()

    def GetPartitionStatus(self, request: Message, caller: Caller) -> Message:
        """What is happening to a partition."""
        partition = self._partition("get the status of", request.partition_id, caller)
        return virmgrpc.GetPartitionStatusReply(status=messages.status_message(partition))

    def GetPartitionIpuofConfig(self, request: Message, caller: Caller) -> Message:
        """Where the hosts find the IPUs of a partition, of one GCD or of all."""
        verb = "get the IPUoF configuration of"
        partition = self._partition(verb, request.partition_id, caller)
        gcds = list(range(partition.num_gcds))
        if request.HasField("gcd_id"):
            if request.gcd_id.id not in gcds:
                which = f"GCD {request.gcd_id.id}; it has {partition.num_gcds}, counted from 0"
                _refuse(Code.INVALID_ARGUMENT, verb, partition.id, f"there is no {which}")
            gcds = [request.gcd_id.id]
        if partition.ready is not Ready.ACTIVE or not partition.devices:
            reason = f"it is {partition.ready.name}, not ACTIVE"
            _refuse(Code.FAILED_PRECONDITION, verb, partition.id, "; ".join([reason, *partition.errors]).rstrip("."))
        return virmgrpc.GetPartitionIpuofConfigReply(ipuof_config=messages.ipuof_config(partition, gcds))

    @waits_for_agents
    def ListIPUAttributes(self, request: Message, caller: Caller) -> Message:
        """The attributes of all IPUs of some agents, or of all that the caller may use and that can be asked."""
        with self._controller.reading() as state:
            usable = dict.fromkeys(
                id
                for id in sorted(state.agents)
                if caller.allowed is None or state.allocation_of.get(id) in caller.allowed
            )
        wanted = list(dict.fromkeys(request.agents) or usable)
        for id in wanted:
            if id not in usable:
                reason = not_there(Kind.AGENT, id, Context(allowed=caller.allowed)).reason
                raise RuleError(Code.NOT_FOUND, f"Cannot list IPU attributes: {reason}.")
        told = self._lifecycle.ipu_attributes(wanted).result()
        reply = virmgrpc.ListIPUAttributesReply()
        for id in wanted:
            if id in told:
                entry = reply.entries.add(agent=id)
                for ipu, attributes in told[id].items():
                    entry.ipu_attributes[ipu].attributes.update(attributes)
        return reply

    def _partition(self, verb: str, id: str, caller: Caller) -> Partition:
        _check_id(verb, id)
        context = Context(allowed=caller.allowed)
        partition = self._controller.state.partitions.get(id)
        if partition is None or not context.may_use(partition.allocation):
            _refuse(Code.NOT_FOUND, verb, id, not_there(Kind.PARTITION, id, context).reason)
        return partition


def _check_id(verb: str, id: str) -> None:
    try:
        check_id(Kind.PARTITION, id)
    except Refused as refusal:
        _refuse(refusal.code, verb, id, refusal.reason)


def _refuse(code: Code, verb: str, id: str, reason: str) -> NoReturn:
    raise RuleError(code, f"Cannot {verb} partition {shown(id)}: {reason}.")


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
