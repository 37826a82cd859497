# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of agents as checked and bounded values. No I/O.

Agents are not trusted: a faulty or hostile agent may harm its own partitions only. The rest of the controller uses
the values of this module, never the messages. A message outside the limits raises InvalidMessageError. Texts for
people are cut and cleaned instead.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from openipu.shared.pod.topology import CableKind
from openipu.shared.vipu.object_rules import IPUS_PER_MACHINE, is_valid_id
from openipu.vipu.agent_api import identity
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.agent_api.limits import MAX_FAULTS_PER_EVENT
from openipu.vipu.domain.model import Device

MAX_TEXT = 300  # characters of an error or a reason
MAX_VALUE = 256  # characters of the value of a fact or an attribute
MAX_NAME = 128  # characters of names, versions and serial ids
MAX_ENTRIES = 64  # facts, versions, ports, links or interfaces of one machine; facts or attributes of one IPU
MAX_COUNT = 2**48  # calls or errors; no machine reaches it
MAX_PFC_CLASS = 15  # more than the eight of IEEE 802.1Qbb: Graphcore's guide prints the class 11
_MAX_ADDRESS = 64  # characters of an IP address
_MAX_SMALL = 2**16 - 1  # device ids, architectures and ports

_BOOT_ID = re.compile(r"[!-~]{1,64}")
_LINK = re.compile(r"[A-Za-z0-9_.-]{1,32}")

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class InvalidMessageError(Exception):
    """Raised for a message of an agent that is outside the limits; the text is a clause."""

    error_code = "OPU617"


@dataclass(frozen=True, slots=True)
class Fact:
    """Fact about a machine or an IPU."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class IpuInfo:
    """Facts about one IPU, 0 to 3."""

    ipu: int
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """Identity and versions of a machine."""

    num_ipus: int
    facts: tuple[Fact, ...]
    ipus: tuple[IpuInfo, ...]
    versions: Mapping[str, str]  # component -> version


@dataclass(frozen=True, slots=True)
class Fault:
    """Failure of an IPU of a partition."""

    partition_id: str
    ipu: int
    reason: str


@dataclass(frozen=True, slots=True)
class Revision:
    """State of the partitions of an agent: the boot, and the number of changes since then."""

    boot_id: str
    revision: int

    def includes(self, other: Revision) -> bool:
        """Return whether this is the state at the other revision, or after it, in the same boot."""
        return self.boot_id == other.boot_id and self.revision >= other.revision


@dataclass(frozen=True, slots=True)
class HeldShare:
    """IPUs of a machine that a partition holds, and the controller that configured it."""

    partition_id: str
    ipus: frozenset[int]
    deployment: str  # empty: unknown
    epoch: int


@dataclass(frozen=True, slots=True)
class AgentEvent(Revision):
    """Event of an agent, with the shares of all partitions on its machine."""

    shares: tuple[HeldShare, ...]
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class ShareResult:
    """Result for one partition. An empty ``error`` means success. ``devices`` are in the order of the share."""

    error: str = ""
    devices: tuple[Device, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """State of a link at one machine."""

    up: bool
    corrected_errors: int


def clean(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text of an agent for people: one printable line of at most ``limit`` characters."""
    if len(text) <= limit and text.isprintable() and " " not in text:  # almost all names and versions
        return text
    cut = printable = text[: 4 * limit]
    if not cut.isprintable():
        printable = "".join(character if character.isprintable() else " " for character in cut)
    line = " ".join(printable.split())
    return line if len(line) <= limit and len(text) == len(cut) else f"{line[: limit - 1]}…"


def machine_info(message: Any) -> MachineInfo:
    """Return a ``MachineInfo`` message."""
    if message.num_ipus > IPUS_PER_MACHINE:
        raise InvalidMessageError(f"it reports {message.num_ipus} IPUs, more than {IPUS_PER_MACHINE}")
    numbers = [each.ipu for each in message.ipus]
    _check_ipus(numbers)
    return MachineInfo(
        message.num_ipus,
        _facts(message.facts),
        tuple(IpuInfo(each.ipu, _facts(each.facts)) for each in message.ipus),
        versions(message),
    )


def versions(message: Any) -> dict[str, str]:
    """Return the versions in a ``MachineInfo`` message, sorted by component."""
    _check_number("versions", message.versions)
    return {clean(name, MAX_NAME): clean(version, MAX_NAME) for name, version in sorted(message.versions.items())}


def revision(message: Any) -> Revision:
    """Return boot id and revision of an event or a reply."""
    if not _BOOT_ID.fullmatch(message.boot_id):
        raise InvalidMessageError("its boot id is not 1 to 64 printable ASCII characters")
    return Revision(message.boot_id, _count("revision", message.revision))


def event(message: Any) -> AgentEvent:
    """Return an ``AgentEvent`` message."""
    state = revision(message)
    if len(message.shares) > IPUS_PER_MACHINE:
        raise InvalidMessageError(
            f"it reports {len(message.shares)} partitions on a machine with {IPUS_PER_MACHINE} IPUs"
        )
    if len(message.faults) > MAX_FAULTS_PER_EVENT:
        raise InvalidMessageError(f"it reports {len(message.faults)} faults at once, more than {MAX_FAULTS_PER_EVENT}")
    _check_ids((*(share.partition_id for share in message.shares), *(fault.partition_id for fault in message.faults)))
    for fault in message.faults:
        _check_ipus([fault.ipu])
    faults = (Fault(fault.partition_id, fault.ipu, clean(fault.reason)) for fault in message.faults)
    return AgentEvent(state.boot_id, state.revision, _shares(message.shares), tuple(faults))


def share_results(results: Iterable[Any], ipus: Mapping[str, Sequence[int]]) -> dict[str, ShareResult]:
    """Return the results for these partitions by id. ``ipus``: partition -> IPUs of its share, empty for a release.

    A partition without exactly one valid result gets an error.
    """
    found: dict[str, list[Any]] = {}
    for result in results:
        found.setdefault(result.partition_id, []).append(result)
    return {id: _share_result(found.get(id, ()), expected) for id, expected in ipus.items()}


def attributes(message: Any) -> dict[int, dict[str, str]]:
    """Return IPU -> attribute -> value of a ``ListIpuAttributesReply`` message."""
    _check_ipus(sorted(message.ipus))
    reported = {}
    for ipu, entry in sorted(message.ipus.items()):
        _check_number("attributes", entry.attributes)
        reported[ipu] = {
            clean(name, MAX_NAME): clean(value, MAX_VALUE) for name, value in sorted(entry.attributes.items())
        }
    return reported


def cables(message: Any) -> dict[tuple[CableKind, int], str]:
    """Return chassis port -> serial id of a ``ReadCablesReply`` message."""
    return _ports(message.ports, lambda item: clean(item.serial, MAX_NAME))


def pulses(message: Any) -> dict[tuple[CableKind, int], int]:
    """Return chassis port -> number of pulses of a ``ReadSyncReply`` message."""
    return _ports(message.ports, lambda item: int(item.count))


def links(message: Any) -> dict[str, Link]:
    """Return link -> state of a ``TrainLinksReply`` or ``RunTrafficReply`` message."""
    _check_number("links", message.links)
    states = {}
    for item in message.links:
        if not _LINK.fullmatch(item.link):
            raise InvalidMessageError(f"it reports a link with the invalid name {_quoted(item.link)}")
        states[item.link] = Link(item.up, _count("number of corrected errors", item.corrected_errors))
    return states


def pfc_classes(message: Any) -> dict[str, tuple[int, ...]]:
    """Return interface -> classes of a ``ReadPfcReply`` message."""
    _check_number("interfaces", message.interfaces)
    classes = {}
    for name, entry in message.interfaces.items():
        if len(set(entry.classes)) < len(entry.classes) or any(number > MAX_PFC_CLASS for number in entry.classes):
            raise InvalidMessageError(f"it reports PFC classes other than 0 to {MAX_PFC_CLASS}")
        classes[clean(name, MAX_NAME)] = tuple(entry.classes)
    return classes


def _shares(messages: Sequence[Any]) -> tuple[HeldShare, ...]:
    _check_ipus([ipu for share in messages for ipu in share.ipus])
    for share in messages:
        if not share.ipus:
            raise InvalidMessageError(f"it reports partition {_quoted(share.partition_id)} without IPUs")
        if share.deployment and not identity.is_deployment(share.deployment):
            raise InvalidMessageError(f"it reports the invalid deployment {_quoted(share.deployment)}")
    if len({share.partition_id for share in messages}) < len(messages):
        raise InvalidMessageError("it reports a partition twice")
    return tuple(
        HeldShare(share.partition_id, frozenset(share.ipus), share.deployment, _count("epoch", share.epoch))
        for share in messages
    )


def _share_result(found: Sequence[Any], ipus: Sequence[int]) -> ShareResult:
    if len(found) != 1:
        return ShareResult(f"its reply has {len(found) or 'no'} results for this partition")
    (result,) = found
    if result.error:
        return ShareResult(clean(result.error) or "it gives no reason")
    if not ipus:
        return ShareResult()
    if [device.ipu_id for device in result.devices] != list(ipus):
        return ShareResult("its devices are not those of its IPUs, one for each in order")
    try:
        return ShareResult("", tuple(_device(each, result.ipuof_server_version) for each in result.devices))
    except InvalidMessageError as error:
        return ShareResult(str(error))


@functools.lru_cache(4096)
def _is_unicast(text: str) -> bool:
    """Return whether a text is a unicast IP address in its usual form. All devices of a machine have the same one."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    # The zone of an IPv6 address may contain any character.
    return str(address) == text and "%" not in text and not (address.is_multicast or address.is_unspecified)


def _device(message: Any, server_version: str) -> Device:
    if len(message.ip) > _MAX_ADDRESS or not _is_unicast(message.ip):
        raise InvalidMessageError(f"the address {_quoted(message.ip)} of a device is no unicast IP address")
    for port in (message.server_port, message.rdma_port):
        if not 1 <= port <= _MAX_SMALL:
            raise InvalidMessageError(f"the port {port} of a device is not 1 to {_MAX_SMALL}")
    for number in (message.device_id, message.ipu_arch_id):
        if not 0 <= number <= _MAX_SMALL:
            raise InvalidMessageError(f"the number {number} of a device is not 0 to {_MAX_SMALL}")
    return Device(
        ip=message.ip,
        server_port=message.server_port,
        rdma_port=message.rdma_port,
        device_id=message.device_id,
        ipu_arch_id=message.ipu_arch_id,
        chip_id=clean(message.chip_id, MAX_NAME),
        gwsw_version=clean(message.gwsw_version, MAX_NAME),
        ipum_sw_version=clean(message.ipum_sw_version, MAX_NAME),
        ipuof_server_version=clean(server_version, MAX_NAME),
    )


def _facts(messages: Any) -> tuple[Fact, ...]:
    _check_number("facts", messages)
    return tuple(Fact(clean(fact.name, MAX_NAME), clean(fact.value, MAX_VALUE)) for fact in messages)


def _ports(items: Any, value: Callable[[Any], _Value]) -> dict[tuple[CableKind, int], _Value]:
    _check_number("ports", items)
    found = {}
    for item in items:
        if item.port > _MAX_SMALL:
            raise InvalidMessageError(f"it reports port {item.port}, which no machine has")
        port = _kind(item.kind), item.port
        if port in found:
            raise InvalidMessageError(f"it reports port {item.port} of kind {item.kind} twice")
        found[port] = value(item)
    return found


def _kind(number: int) -> CableKind:
    try:
        return CableKind[contract.CablePort.Kind.Name(number)]
    except (KeyError, ValueError):
        raise InvalidMessageError(f"it reports ports of unknown kind {number}; it may run a newer release") from None


def _check_ids(ids: Iterable[str]) -> None:
    for id in ids:
        if not is_valid_id(id):
            raise InvalidMessageError(f"it reports a partition with the invalid id {_quoted(id)}")


def _check_ipus(numbers: Sequence[int]) -> None:
    if len(set(numbers)) != len(numbers) or any(not 0 <= number < IPUS_PER_MACHINE for number in numbers):
        raise InvalidMessageError(f"it reports IPUs other than 0 to {IPUS_PER_MACHINE - 1}, or one of them twice")


def _check_number(name: str, items: Any) -> None:
    if len(items) > MAX_ENTRIES:
        raise InvalidMessageError(f"it reports {len(items)} {name}, more than {MAX_ENTRIES}")


def _count(name: str, number: int) -> int:
    if number > MAX_COUNT:
        raise InvalidMessageError(f"its {name} {number} is higher than any machine reaches")
    return number


def _quoted(text: str) -> str:
    return repr(clean(text, 40))
