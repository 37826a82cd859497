# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of the API's objects and their conversion, as the REST framework of AWX does it.

Source: the serializers of AWX 24.6.1. ``null`` for a text or a Boolean is the empty value. Unknown fields and
read-only fields are ignored. Every error is listed under the name of its field.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import yaml

MISSING: Any = object()


@dataclass(frozen=True)
class Field:
    """One field: its kind, its value in new objects, and which requests may set it."""

    kind: str = "text"
    default: Any = ""
    required: bool = False
    choices: tuple[Any, ...] = ()
    to: str = ""
    deletes: bool = False  # the object is deleted with the one it refers to
    create_only: bool = False
    read_only: bool = False
    null: bool = False


def text(default: Any = "", **more: Any) -> Field:
    """Return a field of text."""
    return Field("text", default, **more)


def integer(default: Any = 0, **more: Any) -> Field:
    """Return a field of an integer."""
    return Field("integer", default, **more)


def boolean(default: Any = False, **more: Any) -> Field:
    """Return a field of a Boolean."""
    return Field("boolean", default, **more)


def choice(*choices: Any, default: Any = "", **more: Any) -> Field:
    """Return a field with a fixed set of values."""
    return Field("choice", default, choices=choices, **more)


def reference(to: str, **more: Any) -> Field:
    """Return a field with the ID of another object."""
    return Field("reference", None, to=to, **more)


def data(default: Any = None, **more: Any) -> Field:
    """Return a field of JSON data."""
    return Field("data", {} if default is None else default, **more)


def variables(**more: Any) -> Field:
    """Return a field of variables, which are text with YAML or JSON."""
    return Field("variables", "", **more)


class Rejected(Exception):
    """Raised to answer a request with an error."""

    def __init__(self, body: Any, status: int = 400) -> None:
        super().__init__(body)
        self.body, self.status = body, status


def parse_variables(value: Any) -> dict[str, Any]:
    """Return variables as a dictionary. Raise ValueError for text that is not one."""
    if isinstance(value, dict):
        return value
    try:
        parsed = yaml.safe_load(value) if value else {}
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    if parsed is None:
        return {}
    if not isinstance(parsed, dict):
        raise ValueError("not a dictionary")  # noqa: TRY004 - one kind of error for all invalid text
    return parsed


def convert(field: Field, value: Any, exists: Any) -> Any:
    """Return the value to store. Raise ValueError with the message for the field.

    ``exists``: function that returns whether the object of a reference exists.
    """
    return _CONVERSIONS[field.kind](field, value, exists)


def _text(field: Field, value: Any, _exists: Any) -> Any:
    if value is None:
        if field.null:
            return None
        value = ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("Not a valid string.")  # noqa: TRY004 - as for all invalid values
    if field.required and not str(value).strip():
        raise ValueError("This field may not be blank.")
    return str(value)


def _integer(field: Field, value: Any, _exists: Any) -> Any:
    if value is None and field.null:
        return None
    if value is None:
        raise ValueError("This field may not be null.")
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("A valid integer is required.")  # noqa: TRY004 - as for all invalid values
    try:
        return int(value)
    except ValueError:
        raise ValueError("A valid integer is required.") from None


def _boolean(field: Field, value: Any, _exists: Any) -> Any:
    if value in (None, ""):
        return None if field.null else False
    if isinstance(value, (dict, list)) or str(value).lower() not in ("true", "false", "1", "0", "yes", "no"):
        raise ValueError("Must be a valid boolean.")
    return str(value).lower() in ("true", "1", "yes")


def _choice(field: Field, value: Any, _exists: Any) -> Any:
    if value is None:
        return None if field.null else ""
    if isinstance(value, (dict, list)) or (value not in field.choices and value != ""):
        raise ValueError(f'"{value}" is not a valid choice.')
    return value


def _reference(field: Field, value: Any, exists: Any) -> Any:
    if value in (None, ""):
        if field.required:
            raise ValueError("This field may not be null.")
        return None
    if isinstance(value, bool) or not str(value).isdigit():
        raise ValueError(f"Incorrect type. Expected pk value, received {type(value).__name__}.")
    if not exists(field.to, int(value)):
        raise ValueError(f'Invalid pk "{value}" - object does not exist.')
    return int(value)


def _data(field: Field, value: Any, _exists: Any) -> Any:
    if isinstance(value, str) and value:
        try:
            return parse_variables(value)
        except ValueError:
            raise ValueError("Value must be valid JSON.") from None
    return value if value not in (None, "") else (None if field.null else {})


def _variables(_field: Field, value: Any, _exists: Any) -> Any:
    if isinstance(value, (dict, list)):
        value = json.dumps(value)
    try:
        parse_variables(value or "")
    except ValueError as error:
        raise ValueError(f"Cannot parse as JSON or YAML: {error}") from None
    return value or ""


_CONVERSIONS = {
    "text": _text,
    "integer": _integer,
    "boolean": _boolean,
    "choice": _choice,
    "reference": _reference,
    "data": _data,
    "variables": _variables,
}
