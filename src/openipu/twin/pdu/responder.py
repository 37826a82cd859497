# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests as pysnmp's engine hands them over, after it has let the caller in.

It lets in users with both keys only, since they are made with both (RFC 3414, 3.2.5).

pysnmp's own responders are not used: they walk a tree of an object for each instance, which is slow, and they name
another variable than the one that was refused.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.pdu.mib import Oid, Syntax
from pysnmp.proto import error, rfc1902, rfc1905
from pysnmp.proto.api import v2c
from pysnmp.proto.proxy import rfc2576

from openipu.twin.pdu.agent import Absent, Agent, Binding
from openipu.twin.pdu.errors import Refusal, Status

# Longest message, in bytes: what goes through an Ethernet unfragmented. A part of it is the envelope: engine,
# user, keys and padding of SNMPv3.
LONGEST_MESSAGE = 1472
_ENVELOPE = 200
_SHORT = 124  # bytes of name and value up to which each length takes one byte

_WIRE: dict[Syntax, Any] = {
    Syntax.INTEGER: rfc1902.Integer32,
    Syntax.GAUGE: rfc1902.Gauge32,
    Syntax.TEXT: rfc1902.OctetString,
    Syntax.OBJECT_ID: rfc1902.ObjectIdentifier,
    Syntax.TIME_TICKS: rfc1902.TimeTicks,
    Syntax.ADDRESS: rfc1902.IpAddress,
}
_SYNTAX = {kind.tagSet: syntax for syntax, kind in _WIRE.items()}
_ABSENT = {
    Absent.OBJECT: rfc1905.noSuchObject,
    Absent.INSTANCE: rfc1905.noSuchInstance,
    Absent.END: rfc1905.endOfMibView,
}
_SERVED = {
    rfc1905.GetRequestPDU.tagSet: "get",
    rfc1905.GetNextRequestPDU.tagSet: "get_next",
    rfc1905.GetBulkRequestPDU.tagSet: "get_bulk",
    rfc1905.SetRequestPDU.tagSet: "set",
}


class Responder:
    """Answers what an engine lets in.

    ``may_write`` is asked with the version of the security model (1, 2, 3) and the name that the caller has there.
    """

    def __init__(self, engine: Any, agent: Agent, may_write: Callable[[int, str], bool]) -> None:
        """Registers itself with the engine."""
        self._agent = agent
        self._may_write = may_write
        self.requests: Counter[str] = Counter()  # by what they ask for: get, get_next, get_bulk, set
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
        """Answer one request; pysnmp calls this."""
        asked = rfc2576.v1_to_v2(pdu) if processing_model == 0 else pdu
        self.requests[_SERVED[asked.tagSet]] += 1
        answer = v2c.apiPDU.get_response(asked)
        bindings = v2c.apiPDU.get_varbinds(asked)
        status, index = 0, 0
        try:
            if bytes(context_name):  # the only context is the one without a name
                raise Refusal(Status.NO_ACCESS, 1)
            bindings = self._answer(asked, bindings, security_model, str(security_name), room)
        except Refusal as refusal:
            status, index = refusal.status, refusal.index
            if status == Status.TOO_BIG:
                bindings = []
        v2c.apiPDU.set_error_status(answer, int(status))
        v2c.apiPDU.set_error_index(answer, index)
        v2c.apiPDU.set_varbinds(answer, bindings)
        if processing_model == 0:
            answer = rfc2576.v2_to_v1(answer, pdu)
        # An answer that cannot be written is not sent, as one that is lost on its way.
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
                answer,
                room,
                state,
                {},
            )

    def _answer(
        self, pdu: Any, bindings: Sequence[tuple[Any, Any]], model: int, name: str, room: int
    ) -> list[tuple[Any, Any]]:
        space = _Space(min(int(room), LONGEST_MESSAGE - _ENVELOPE))
        oids = [_oid(oid) for oid, _value in bindings]
        if pdu.tagSet == rfc1905.SetRequestPDU.tagSet:
            if not self._may_write(int(model), name):
                raise Refusal(Status.NO_ACCESS, 1)
            self._agent.set([_read(oid, value) for oid, (_name, value) in zip(oids, bindings, strict=True)])
            return list(bindings)
        if pdu.tagSet == rfc1905.GetBulkRequestPDU.tagSet:
            first = max(0, int(v2c.apiBulkPDU.get_non_repeaters(pdu)))
            times = max(0, int(v2c.apiBulkPDU.get_max_repetitions(pdu)))
            return [_write(binding) for binding in self._agent.get_bulk(oids, first, times, space.takes)]
        ask = self._agent.get if pdu.tagSet == rfc1905.GetRequestPDU.tagSet else self._agent.get_next
        found = ask(oids)
        if not all(space.takes(binding) for binding in found):
            raise Refusal(Status.TOO_BIG)
        return [_write(binding) for binding in found]


class _Space:
    """The bytes that an answer may still have."""

    def __init__(self, left: int) -> None:
        self._left = left

    def takes(self, binding: Binding) -> bool:
        """Whether there is room for one more, which is then taken."""
        self._left -= _size(binding)
        return self._left >= 0


def _size(binding: Binding) -> int:
    """At most so many bytes: the name in base 128, the value, and tags and lengths of both and of the pair."""
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
