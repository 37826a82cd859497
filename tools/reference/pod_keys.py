# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of the keys of pod.yml and of the columns of machines.csv, from their JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from openipu.pod_files import json_schema
from openipu.shared.pod.spec import INVENTORY_KEYS

from .markdown import page, paragraph, table

Schema = dict[str, Any]

_INTRODUCTION = """
This page is for administrators who write a `pod.yml`. It lists every key with its type, default and valid values.

[POD model](pod-model.md) explains the keys and the valid texts, with examples. Omitted keys without a default are not
set. [Columns of `machines.csv`](machines-csv.md) describes the IPU-Machines.
"""
_MACHINES = """
This page is for administrators who write a `machines.csv`. It lists every column with its type and valid values.

The file has a header line with the names of the columns, then one line per IPU-Machine, both in any order. Lines that
start with `#` are comments. Optional columns may be omitted, and their values may be empty.
[Networks and addresses](pod-model.md#networks-and-addresses) has the rule for omitted addresses.
"""
_TYPES = {"object": "mapping", "array": "list", "integer": "number", "boolean": "true or false", "string": "text"}


def pages() -> dict[str, str]:
    """Return the page of the keys and that of the columns, by their paths in docs/reference."""
    return {
        "pod-keys.md": page("Keys of `pod.yml`", _INTRODUCTION, _sections("", json_schema.pod())),
        "machines-csv.md": page("Columns of `machines.csv`", _MACHINES, [_table("Column", json_schema.machine())]),
    }


def _sections(path: str, schema: Schema) -> Iterator[str]:
    """Yield the section of a mapping, then those of the mappings in it."""
    properties: dict[str, Schema] = schema["properties"]
    if path:
        yield f"## `{path}`"
    else:
        yield "## Top level"
        inventory = ", ".join(f"`{name}`" for name in INVENTORY_KEYS)
        yield paragraph(f"The keys {inventory} belong to Ansible: constructed groups and inventory caches.")
        properties = {name: each for name, each in properties.items() if name not in INVENTORY_KEYS}
    yield _table("Key", {**schema, "properties": properties})
    yield "\n".join(_rules(schema))
    for name, each in properties.items():
        inner = each["items"] if _is_list(each) else each
        if "properties" in inner:
            yield from _sections(f"{path}.{name}".lstrip(".") + ("[]" if _is_list(each) else ""), inner)


def _table(first: str, schema: Schema) -> str:
    """Return the table of the keys of a mapping."""
    required = schema.get("required", ())
    header = (first, "Type", "Required", "Default", "Values", "Meaning")
    return table(header, (_row(name, each, name in required) for name, each in schema["properties"].items()))


def _is_list(schema: Schema) -> bool:
    return "items" in schema


def _row(name: str, schema: Schema, required: bool) -> tuple[str, ...]:
    default = f"`{json.dumps(schema['default'], ensure_ascii=False)}`" if schema.get("default") is not None else ""
    # JSON writes texts in quotes, which YAML does not need.
    default = default.replace('"', "")
    return f"`{name}`", _type(schema), "yes" if required else "", default, _values(schema), schema["description"]


def _type(schema: Schema) -> str:
    if "anyOf" in schema:
        one, *several = schema["anyOf"]
        return f"{_type(one)} or {_type(several[0])}" if several and _is_list(several[0]) else _TYPES["boolean"]
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if _is_list(schema):
        return f"list of {_type(schema['items'])}s"
    return _TYPES[names[0]]


def _values(schema: Schema) -> str:
    """Return the valid values of a key, or those of the items of a list."""
    inner = schema["items"] if _is_list(schema) else schema
    if "minimum" in inner:
        return f"{inner['minimum']} to {inner['maximum']}"
    choices = inner.get("enum", ())
    return ", ".join(f"`{choice}`" for choice in choices if choice is not None)


def _rules(schema: Schema) -> Iterator[str]:
    """Yield the rules of a mapping about several keys."""
    for rule in schema.get("allOf", ()):
        if "not" in rule:
            yield f"* At most one of: {_names(rule['not']['required'])}"
        else:
            yield f"* At least one of: {_names([name for each in rule['anyOf'] for name in each['required']])}"


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
