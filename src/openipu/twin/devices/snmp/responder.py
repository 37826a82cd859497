# SPDX-License-Identifier: GPL-3.0-or-later
"""Responder to the authenticated requests of pysnmp's engine.

The engine accepts a user with both keys only, because the user is configured with both (RFC 3414, 3.2.5).

pysnmp's own responders are not used. They walk a tree with one object per instance, which is slow, and they name
the wrong variable in errors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from pysnmp.proto import error, rfc1902, rfc1905
from pysnmp.proto.api import v2c
from pysnmp.proto.proxy import rfc2576

from openipu.shared.pdu.smi import Oid, Syntax
from openipu.twin.devices.snmp.agent import AbsentValue, Agent, Binding
from openipu.twin.devices.snmp.device import ManagedDevice
from openipu.twin.devices.snmp.errors import SnmpError, Status

# Longest message, in bytes: the payload of one Ethernet frame. The envelope is part of it: engine, user, keys and
# padding of SNMPv3.
LONGEST_MESSAGE = 1472
_ENVELOPE = 200
_SNMPV1 = 1  # its security model
_SHORT = 124  # bytes of name and value up to which each length takes one byte

_WIRE: dict[Syntax, Any] = {
    Syntax.INTEGER: rfc1902.Integer32,
    Syntax.GAUGE: rfc1902.Gauge32,
    Syntax.COUNTER: rfc1902.Counter32,
    Syntax.COUNTER64: rfc1902.Counter64,
    Syntax.TEXT: rfc1902.OctetString,
    Syntax.OBJECT_ID: rfc1902.ObjectIdentifier,
    Syntax.TIME_TICKS: rfc1902.TimeTicks,
    Syntax.ADDRESS: rfc1902.IpAddress,
}
_SYNTAX = {kind.tagSet: syntax for syntax, kind in _WIRE.items()}
_ABSENT = {
    AbsentValue.OBJECT: rfc1905.noSuchObject,
    AbsentValue.INSTANCE: rfc1905.noSuchInstance,
    AbsentValue.END: rfc1905.endOfMibView,
}
_SERVED = {
    rfc1905.GetRequestPDU.tagSet: "get",
    rfc1905.GetNextRequestPDU.tagSet: "get_next",
    rfc1905.GetBulkRequestPDU.tagSet: "get_bulk",
    rfc1905.SetRequestPDU.tagSet: "set",
}


class Responder:
    """Responder for the requests that an engine accepts.

    ``may_write`` takes the version of the security model (1, 2, 3) and the security name of the sender.
    """

    def __init__(self, engine: Any, device: ManagedDevice, may_write: Callable[[int, str], bool]) -> None:
        """Register with the engine."""
        self._requests = device.requests
        self._agent = Agent(device)
        self._agent_of_v1 = Agent(device, counter64=False)
        self._may_write = may_write
        engine.message_dispatcher.register_context_engine_id(engine.snmpEngineID, tuple(_SERVED), self.process)

    def process(
        self,
        engine: Any,
        processing_model: int,
        security_model: int,
        security_name: Any,
        security_level: int,
        context_engine_id: Any,
        context_name: Any,
        version: int,
        pdu: Any,
        room: int,
        state: int,
    ) -> None:
        """Respond to one request; pysnmp calls this."""
        request = rfc2576.v1_to_v2(pdu) if processing_model == 0 else pdu
        self._requests[_SERVED[request.tagSet]] += 1
        response = v2c.apiPDU.get_response(request)
        bindings = v2c.apiPDU.get_varbinds(request)
        status, index = 0, 0
        try:
            if bytes(context_name):  # the only context is the one without a name
                raise SnmpError(Status.NO_ACCESS, 1)
            bindings = self._bindings(request, bindings, int(security_model), str(security_name), room)
        except SnmpError as rejection:
            status, index = rejection.status, rejection.index
            if status == Status.TOO_BIG:
                bindings = []
        v2c.apiPDU.set_error_status(response, int(status))
        v2c.apiPDU.set_error_index(response, index)
        v2c.apiPDU.set_varbinds(response, bindings)
        if processing_model == 0:
            response = rfc2576.v2_to_v1(response, pdu)
        # A response that cannot be encoded is dropped.
        with contextlib.suppress(error.StatusInformation):
            engine.message_dispatcher.return_response_pdu(
                engine,
                processing_model,
                security_model,
                security_name,
                security_level,
                context_engine_id,
                context_name,
                version,
                response,
                room,
                state,
                {},
            )

    def _bindings(
        self, pdu: Any, bindings: Sequence[tuple[Any, Any]], model: int, name: str, room: int
    ) -> list[tuple[Any, Any]]:
        agent = self._agent_of_v1 if model == _SNMPV1 else self._agent
        space = _Space(min(int(room), LONGEST_MESSAGE - _ENVELOPE))
        oids = [_oid(oid) for oid, _value in bindings]
        if pdu.tagSet == rfc1905.SetRequestPDU.tagSet:
            if not self._may_write(model, name):
                raise SnmpError(Status.NO_ACCESS, 1)
            agent.set([_read(oid, value) for oid, (_name, value) in zip(oids, bindings, strict=True)])
            return list(bindings)
        if pdu.tagSet == rfc1905.GetBulkRequestPDU.tagSet:
            first = max(0, int(v2c.apiBulkPDU.get_non_repeaters(pdu)))
            times = max(0, int(v2c.apiBulkPDU.get_max_repetitions(pdu)))
            return [_write(binding) for binding in agent.get_bulk(oids, first, times, space.reserve)]
        read = agent.get if pdu.tagSet == rfc1905.GetRequestPDU.tagSet else agent.get_next
        found = read(oids)
        if not all(space.reserve(binding) for binding in found):
            raise SnmpError(Status.TOO_BIG)
        return [_write(binding) for binding in found]


class _Space:
    """Free bytes of a response."""

    def __init__(self, left: int) -> None:
        self._left = left

    def reserve(self, binding: Binding) -> bool:
        """Reserve the bytes of a binding; return whether it fits."""
        self._left -= _size(binding)
        return self._left >= 0


def _size(binding: Binding) -> int:
    """Return an upper bound in bytes: the name in base 128, the value, and tags and lengths of both and of the pair."""
    size: int = sum(1 + max(0, number.bit_length() - 1) // 7 for number in binding.oid)
    if isinstance(binding.value, tuple):
        size += 5 * len(binding.value)
    elif isinstance(binding.value, str | bytes):
        size += len(binding.value)
    elif isinstance(binding.value, int):
        size += binding.value.bit_length() // 8 + 1
    return size + (6 if size < _SHORT else 12)


def _oid(oid: Any) -> Oid:
    return tuple(oid)


def _write(binding: Binding) -> tuple[Any, Any]:
    name = rfc1902.ObjectName(binding.oid)
    if binding.syntax is None:
        return name, _ABSENT[binding.value]
    return name, _WIRE[binding.syntax](binding.value)


def _read(oid: Oid, value: Any) -> Binding:
    syntax = _SYNTAX.get(value.tagSet)
    if syntax is Syntax.TEXT:
        return Binding(oid, syntax, bytes(value))
    if syntax is Syntax.ADDRESS:
        return Binding(oid, syntax, ".".join(str(byte) for byte in bytes(value)))
    return Binding(oid, syntax, int(value) if syntax in (Syntax.INTEGER, Syntax.GAUGE) else None)
