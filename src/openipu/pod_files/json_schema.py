# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON Schema of ``pod.yml`` for editors, generated from the declarations that validate it. No I/O.

The schema never rejects a file that the loader accepts. The loader rejects more: it also compares objects.
"""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import BOOLEANS

from openipu.shared.pod import spec
from openipu.shared.pod.forms import TEXT, Form
from openipu.shared.pod.mapping_schema import MappingSchema

Schema = dict[str, Any]

_LETTERS = r"A-Za-z0-9_\u0080-\uffff"  # \w of Python, with a few more characters; that of ECMAScript is ASCII only
_NUMBER = r"^\s*[+-]?[0-9_]+\s*$"  # numbers in quotes
_TRUTH_VALUES = sorted(value for value in BOOLEANS if isinstance(value, str))


def pod() -> Schema:
    """Return the JSON Schema (draft 7) of ``pod.yml``."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "pod.yml of openipu.pod",
        **_mapping(spec.POD),
    }


def machine() -> Schema:
    """Return the JSON Schema of a line of ``machines.csv``, with its columns as keys."""
    return _mapping(spec.MACHINE)


def _mapping(schema: MappingSchema) -> Schema:
    """Return the schema of a mapping."""
    required = [name for name, option in schema.declared.items() if option.get("required")]
    rules: list[Schema] = [{"not": {"required": list(terms)}} for terms in schema.rules.get("mutually_exclusive", ())]
    rules += [{"anyOf": [{"required": [term]} for term in terms]} for terms in schema.rules.get("required_one_of", ())]
    return {
        "type": "object",
        "properties": {name: _described(schema, name) for name in schema.declared},
        "additionalProperties": False,
        **({"required": required} if required else {}),
        **({"allOf": rules} if rules else {}),
    }


def _described(schema: MappingSchema, name: str) -> Schema:
    """Return the schema of a key with its description, and with the rule of its text, except the general one."""
    found = _option(schema.declared[name])
    about = schema.about.get(name)
    if about:
        rule = found.get("description", "")
        found["description"] = about if rule in ("", f"Use {TEXT.rule}.") else f"{about} {rule}"
    return found


def _option(option: Any) -> Schema:
    """Return the schema of a key."""
    found = _value(option)
    if option.get("single"):
        one = _option({"form": option["form"]})
        return {"anyOf": [one, {**found, "minItems": 1, "uniqueItems": True}]}
    if "default" in option:
        found["default"] = option["default"]
    return found


def _value(option: Any) -> Schema:
    kind = option.get("type", "str")
    if kind == "raw":
        return {"not": {"type": "null"}}
    if kind == "list":
        if "schema" in option:
            return {"type": "array", "items": _mapping(option["schema"])}
        element = {key: option[key] for key in ("form", "choices") if key in option}
        return {"type": "array", "items": _value({"type": option["elements"], **element})}
    if kind == "dict":
        if "schema" in option:
            return _mapping(option["schema"])
        return {"type": "object", "additionalProperties": _text(option.get("form", TEXT), required=False)}
    if kind == "bool":
        return {"anyOf": [{"type": "boolean"}, {"enum": [*_TRUTH_VALUES, 0, 1]}]}
    if kind == "int":
        lowest, highest = option.get("range", (None, None))
        limits = {} if lowest is None else {"minimum": lowest, "maximum": highest}
        return {"type": ["integer", "string"], "pattern": _NUMBER, **limits}
    if "choices" in option:
        return {"type": "string", "enum": list(option["choices"])}
    return _text(option.get("form", TEXT), option.get("required", False))


def _text(form: Form, required: bool) -> Schema:
    """Return the schema of a text. YAML reads some texts as numbers."""
    pattern = form.pattern.replace(r"\w", _LETTERS)
    return {
        "type": ["string", "number"],
        "pattern": f"^(?:{pattern})$" if required else f"^(?:{pattern})?$",
        "description": f"Use {form.rule}.",
    }
