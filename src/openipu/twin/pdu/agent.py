# SPDX-License-Identifier: GPL-3.0-or-later
"""What an SNMP agent does with a request (RFC 3416, 4.2), apart from how it is written on the wire."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from ansible_collections.openipu.pod.plugins.module_utils.pdu.mib import Oid, Syntax

from openipu.twin.pdu.device import variables
from openipu.twin.pdu.errors import Refusal, Status
from openipu.twin.pdu.objects import Objects, Variable
from openipu.twin.pdu.pdu import Draft, Pdu

_log: structlog.stdlib.BoundLogger = structlog.get_logger("twin.pdu")

LONGEST_TEXT = 255  # DisplayString (RFC 2579)


class Absent(enum.Enum):
    """What stands in an answer in place of a value."""

    OBJECT = "noSuchObject"
    INSTANCE = "noSuchInstance"
    END = "endOfMibView"


@dataclass(frozen=True, slots=True)
class Binding:
    """A name, and a value with its type; an ``Absent`` has none."""

    oid: Oid
    syntax: Syntax | None
    value: Any


class Agent:
    """Answers requests to a PDU; each method takes a sample of its loads first."""

    def __init__(self, pdu: Pdu) -> None:
        """See the class."""
        self._pdu = pdu
        self._objects = Objects(variables(pdu))

    def get(self, oids: Sequence[Oid]) -> list[Binding]:
        """The values of these names."""
        self._pdu.sample()
        return [self._read(oid) for oid in oids]

    def get_next(self, oids: Sequence[Oid]) -> list[Binding]:
        """The objects after these names."""
        self._pdu.sample()
        return [self._read_after(oid) for oid in oids]

    def get_bulk(
        self, oids: Sequence[Oid], non_repeaters: int, repetitions: int, fits: Callable[[Binding], bool]
    ) -> list[Binding]:
        """The object after each of the first names, and as many objects after each of the others.

        As long as they fit: ``fits`` is asked in turn, and the first No ends the answer, as does the end of the MIB.
        """
        self._pdu.sample()
        found: list[Binding] = []
        for oid in oids[:non_repeaters]:
            binding = self._read_after(oid)
            if not fits(binding):
                return found
            found.append(binding)
        row = list(oids[non_repeaters:])
        for _ in range(repetitions if row else 0):
            bindings = [self._read_after(oid) for oid in row]
            for binding in bindings:
                if not fits(binding):
                    return found
                found.append(binding)
            if all(binding.value is Absent.END for binding in bindings):
                break
            row = [binding.oid for binding in bindings]
        return found

    def set(self, bindings: Sequence[Binding]) -> None:
        """Write all of them, or none. Raises Refusal."""
        draft = self._pdu.draft()
        found = [self._write(draft, binding, index) for index, binding in enumerate(bindings, 1)]
        for index, variable in enumerate(found, 1):
            if variable.check is not None:
                with _at(index):
                    variable.check(draft)
        try:
            self._pdu.commit(draft)
        except OSError as error:
            _log.warning("settings not kept", pdu=self._pdu.name, error=str(error))
            raise Refusal(Status.COMMIT_FAILED, 1) from error

    def _read(self, oid: Oid) -> Binding:
        variable = self._objects.at(oid)
        if variable is not None:
            return _binding(variable)
        return Binding(oid, None, Absent.OBJECT if self._objects.column(oid) is None else Absent.INSTANCE)

    def _read_after(self, oid: Oid) -> Binding:
        variable = self._objects.after(oid)
        return Binding(oid, None, Absent.END) if variable is None else _binding(variable)

    def _write(self, draft: Draft, binding: Binding, index: int) -> Variable:
        with _at(index):
            variable = self._objects.at(binding.oid)
            if variable is None:
                column = self._objects.column(binding.oid)
                raise Refusal(Status.NO_CREATION if column is not None and column.writable else Status.NOT_WRITABLE)
            if variable.write is None:
                raise Refusal(Status.NOT_WRITABLE)
            variable.write(draft, _taken(variable, binding))
        return variable


@contextmanager
def _at(index: int) -> Iterator[None]:
    """Gives a refusal the index of the variable that is being looked at."""
    try:
        yield
    except Refusal as refusal:
        refusal.index = index
        raise


def _binding(variable: Variable) -> Binding:
    return Binding(variable.oid, variable.column.syntax, variable.read())


def _taken(variable: Variable, binding: Binding) -> int | str:
    """The value that is to be written. Raises Refusal for one that the column does not have."""
    column, value = variable.column, binding.value
    if binding.syntax is not column.syntax:
        raise Refusal(Status.WRONG_TYPE)
    if column.syntax is Syntax.TEXT:
        if len(value) > LONGEST_TEXT:
            raise Refusal(Status.WRONG_LENGTH)
        if not (value.isascii() and all(0x20 <= byte < 0x7F for byte in value)):
            raise Refusal(Status.WRONG_VALUE)
        return str(value, "ascii")
    if column.syntax is Syntax.ADDRESS:
        return str(value)
    below = column.low is not None and value < column.low
    above = column.high is not None and value > column.high
    if below or above or (column.names and value not in column.names.values()):
        raise Refusal(Status.WRONG_VALUE)
    return int(value)
