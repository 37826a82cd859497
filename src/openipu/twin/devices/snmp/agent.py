# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to an SNMP agent (RFC 3416, 4.2), without their encoding on the wire."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from openipu.shared.pdu.smi import Oid, Syntax
from openipu.twin.devices.snmp.device import ManagedObjects
from openipu.twin.devices.snmp.errors import SnmpError, Status
from openipu.twin.devices.snmp.objects import Objects, Variable

_log: structlog.stdlib.BoundLogger = structlog.get_logger("twin.snmp")

LONGEST_TEXT = 255  # DisplayString (RFC 2579)


class AbsentValue(enum.Enum):
    """Marker in a response in place of a value (RFC 3416, 3)."""

    OBJECT = "noSuchObject"
    INSTANCE = "noSuchInstance"
    END = "endOfMibView"


@dataclass(frozen=True, slots=True)
class Binding:
    """A name and a typed value; an ``AbsentValue`` has no type."""

    oid: Oid
    syntax: Syntax | None
    value: Any


class Agent:
    """SNMP agent of a device.

    Without ``counter64``, it has no objects of this type, which SNMPv1 does not have (RFC 3584, 4.2.2.1).
    """

    def __init__(self, device: ManagedObjects, *, counter64: bool = True) -> None:
        self._device = device
        self._counter64 = counter64

    def get(self, oids: Sequence[Oid]) -> list[Binding]:
        """Return the values of these names."""
        objects = self._objects()
        return [_read(objects, oid) for oid in oids]

    def get_next(self, oids: Sequence[Oid]) -> list[Binding]:
        """Return the objects after these names."""
        objects = self._objects()
        return [_read_after(objects, oid) for oid in oids]

    def get_bulk(
        self, oids: Sequence[Oid], non_repeaters: int, repetitions: int, fits: Callable[[Binding], bool]
    ) -> list[Binding]:
        """Return the object after each of the first names, and ``repetitions`` objects after each of the others.

        ``fits`` returns whether a binding still fits into the response. The first that does not fit ends the
        response, and so does the end of the MIB.
        """
        objects = self._objects()
        found: list[Binding] = []
        for oid in oids[:non_repeaters]:
            binding = _read_after(objects, oid)
            if not fits(binding):
                return found
            found.append(binding)
        row = list(oids[non_repeaters:])
        for _ in range(repetitions if row else 0):
            bindings = [_read_after(objects, oid) for oid in row]
            for binding in bindings:
                if not fits(binding):
                    return found
                found.append(binding)
            if all(binding.value is AbsentValue.END for binding in bindings):
                break
            row = [binding.oid for binding in bindings]
        return found

    def set(self, bindings: Sequence[Binding]) -> None:
        """Write all of these variables, or none. Raises SnmpError."""
        objects, draft = self._objects(), self._device.draft()
        found = [_write(objects, draft, binding, index) for index, binding in enumerate(bindings, 1)]
        for index, variable in enumerate(found, 1):
            if variable.check is not None:
                with _at(index):
                    variable.check(draft)
        try:
            self._device.commit(draft)
        except OSError as error:
            _log.warning("settings not saved", device=self._device.name, error=str(error))
            raise SnmpError(Status.COMMIT_FAILED, 1) from error

    def _objects(self) -> Objects:
        return self._device.objects(counter64=self._counter64)


def _read(objects: Objects, oid: Oid) -> Binding:
    variable = objects.at(oid)
    if variable is not None:
        return _binding(variable)
    return Binding(oid, None, AbsentValue.OBJECT if objects.column(oid) is None else AbsentValue.INSTANCE)


def _read_after(objects: Objects, oid: Oid) -> Binding:
    variable = objects.after(oid)
    return Binding(oid, None, AbsentValue.END) if variable is None else _binding(variable)


def _write(objects: Objects, draft: Any, binding: Binding, index: int) -> Variable:
    with _at(index):
        variable = objects.at(binding.oid)
        if variable is None:
            column = objects.column(binding.oid)
            raise SnmpError(Status.NO_CREATION if column is not None and column.writable else Status.NOT_WRITABLE)
        if variable.write is None:
            raise SnmpError(Status.NOT_WRITABLE)
        variable.write(draft, _checked_value(variable, binding))
    return variable


@contextmanager
def _at(index: int) -> Iterator[None]:
    """Set the index of the variable in an SNMP error."""
    try:
        yield
    except SnmpError as error:
        error.index = index
        raise


def _binding(variable: Variable) -> Binding:
    return Binding(variable.oid, variable.column.syntax, variable.read())


def _checked_value(variable: Variable, binding: Binding) -> int | str:
    """Return the value to write. Raises SnmpError for a value that the column does not allow."""
    column, value = variable.column, binding.value
    if binding.syntax is not column.syntax:
        raise SnmpError(Status.WRONG_TYPE)
    if column.syntax is Syntax.TEXT:
        if len(value) > LONGEST_TEXT:
            raise SnmpError(Status.WRONG_LENGTH)
        if not (value.isascii() and all(0x20 <= byte < 0x7F for byte in value)):
            raise SnmpError(Status.WRONG_VALUE)
        return str(value, "ascii")
    if column.syntax is Syntax.ADDRESS:
        return str(value)
    below = column.low is not None and value < column.low
    above = column.high is not None and value > column.high
    if below or above or (column.names and value not in column.names.values()):
        raise SnmpError(Status.WRONG_VALUE)
    return int(value)
