# SPDX-License-Identifier: GPL-3.0-or-later
"""Records as JSON: the fields by name, parts of a record as lists. Missing fields have their default."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from openipu.vipu.domain.model import Kind, Record
from openipu.vipu.storage import checksums, record_values

_SORTS = record_values.SORTS
_NAMES = {sort: tuple(field.name for field in fields(sort)) for sort in _SORTS.values()}


_encode = json.JSONEncoder(check_circular=False, default=record_values.part, separators=(",", ":")).encode


def encode(record: Record, checksum: int) -> str:
    """Return a record with its checksum."""
    sort = type(record)
    values = dict(zip(_NAMES[sort], record_values.values[sort](record), strict=True))
    return _encode({"checksum": checksum, "record": values})


def decode(kind: Kind, id: str, value: bytes) -> tuple[Record, int]:
    """Return a record and its checksum. Raises ValueError when they differ, or the value has another form."""
    try:
        content = json.loads(value)
        read = _READ[kind]
        record = _SORTS[kind](**{name: read[name](each) for name, each in content["record"].items()})
        checksum = content["checksum"]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"it has other fields ({error})") from None
    if record.id != id or checksums.checksum(record) != checksum:
        raise ValueError("it does not match its checksum")
    return record, checksum


def _reader(type: Any) -> Callable[[Any], Any]:
    """Return the function that converts a value of JSON to this type of a field."""
    if get_origin(type) is tuple:
        part = get_args(type)[0]
        if is_dataclass(part):
            return lambda values: tuple(part(*each) for each in values)  # type: ignore[operator]
        return tuple
    if isinstance(type, enum.EnumMeta):
        return type
    return lambda value: value


_READ: dict[Kind, dict[str, Callable[[Any], Any]]] = {
    kind: {name: _reader(type) for name, type in get_type_hints(sort).items()} for kind, sort in _SORTS.items()
}
