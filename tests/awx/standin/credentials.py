# SPDX-License-Identifier: GPL-3.0-or-later
"""Credential types and values of credentials.

Source: ``CredentialTypeInputField``, ``CredentialTypeInjectorField`` and ``CredentialInputField`` of AWX 24.6.1.
"""

from __future__ import annotations

import re
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jsonschema import Draft4Validator

from tests.awx.standin.fields import Rejected
from tests.awx.standin.surveys import ENCRYPTED

_NAME = "^[a-zA-Z_]+[a-zA-Z0-9_]*$"
_INPUTS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "required": {"type": "array", "items": {"type": "string"}},
        "fields": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "type": {"enum": ["string", "boolean"]},
                    "format": {"enum": ["ssh_private_key", "url"]},
                    "choices": {"type": "array", "minItems": 1, "items": {"type": "string"}, "uniqueItems": True},
                    "id": {"type": "string", "pattern": _NAME},
                    **{name: {"type": "string"} for name in ("label", "help_text")},
                    **{name: {"type": "boolean"} for name in ("multiline", "secret", "ask_at_runtime")},
                    "default": {},
                },
                "additionalProperties": False,
                "required": ["id", "label"],
            },
        },
    },
}
_INJECTORS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "file": {
            "type": "object",
            "patternProperties": {r"^template(\.[a-zA-Z_]+[a-zA-Z0-9_]*)?$": {"type": "string"}},
            "additionalProperties": False,
        },
        "env": {
            "type": "object",
            "patternProperties": {_NAME: {"type": "string", "pattern": "^[\x00-\x7f]*$"}},
            "additionalProperties": False,
        },
        "extra_vars": {
            "type": "object",
            "patternProperties": {
                r"^[a-zA-Z_\{\}]+[a-zA-Z0-9_\{\}]*$": {
                    "anyOf": [{"type": "string"}, {"type": "array"}, {"$ref": "#/properties/extra_vars"}]
                }
            },
            "additionalProperties": False,
        },
    },
}
# Variables that AWX sets itself or that change how programs are found.
_BLOCKED = {
    *("PATH", "PYTHONPATH", "VIRTUAL_ENV", "JOB_ID", "INVENTORY_ID", "INVENTORY_SOURCE_ID", "INVENTORY_UPDATE_ID"),
    *("AD_HOC_COMMAND_ID", "REST_API_URL", "REST_API_TOKEN", "MAX_EVENT_RES", "CALLBACK_QUEUE", "CALLBACK_CONNECTION"),
    *("CACHE", "JOB_CALLBACK_DEBUG", "INVENTORY_HOSTVARS", "AWX_HOST", "PROJECT_REVISION", "SUPERVISOR_CONFIG_PATH"),
}


def _fields(inputs: dict[str, Any]) -> list[dict[str, Any]]:
    return list(inputs.get("fields", []))


def check_inputs(inputs: Any) -> None:
    """Check the fields of a credential type, and add the default type of fields. Raise Rejected."""
    for error in Draft4Validator(_INPUTS).iter_errors(inputs):
        raise Rejected({"inputs": [f"Schema validation error in relative path {list(error.path)}: {error.message}"]})
    seen = set()
    for field in _fields(inputs):
        if field["id"] == "tower":
            raise Rejected({"inputs": ['"tower" is a reserved field name']})
        if field["id"] in seen:
            raise Rejected({"inputs": [f"field IDs must be unique ({field['id']})"]})
        seen.add(field["id"])
        kind = field.setdefault("type", "string")
        if "default" in field and type(field["default"]) is not {"string": str, "boolean": bool}[kind]:
            raise Rejected({"inputs": [f"{field['default']} is not a {kind}"]})
        for key in ("choices", "multiline", "format", "secret"):
            if key in field and kind != "string":
                raise Rejected({"inputs": [f"{key} not allowed for {kind} type ({field['id']})"]})
        if field.get("ask_at_runtime"):
            raise Rejected({"inputs": ["'ask_at_runtime' is not supported for custom credentials."]})


class _Files:
    """Value of ``tower.filename`` in templates."""

    def __init__(self, names: list[str]) -> None:
        for name in names:
            setattr(self, name, "file")

    def __str__(self) -> str:
        raise UndefinedError("Must define unnamed file injector in order to reference `tower.filename`.")


def check_injectors(injectors: Any, inputs: dict[str, Any]) -> None:
    """Check the injectors of a credential type: their form, and the fields that their templates use. Raise Rejected."""
    for error in Draft4Validator(_INJECTORS).iter_errors(injectors):
        raise Rejected({"injectors": [f"Schema validation error in relative path {list(error.path)}: {error.message}"]})
    files = [name.partition(".")[2] for name in injectors.get("file", {})]
    if "" in files and len(files) > 1:
        raise Rejected({"injectors": ["Must use multi-file syntax when injecting multiple files"]})
    filename: Any = "file" if files == [""] else _Files(files)
    values: dict[str, Any] = {field["id"]: "EXAMPLE" for field in _fields(inputs)}
    values["tower"] = {"filename": filename}
    for name in injectors.get("env", {}):
        if name.startswith("ANSIBLE_"):
            problem = "may affect Ansible configuration so its use is not allowed in credentials."
            raise Rejected({"injectors": [f"Environment variable {name} {problem}"]})
        if name in _BLOCKED:
            raise Rejected({"injectors": [f"Environment variable {name} is not allowed to be used in credentials."]})
    for kind, templates in injectors.items():
        for name, template in _templates(templates):
            _render(kind, name, template, values)


def _templates(value: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for key, item in value.items() for pair in _templates(item, f"{name}.{key}" if name else key)]
    if isinstance(value, list):
        return [pair for index, item in enumerate(value) for pair in _templates(item, f"{name}[{index}]")]
    return [(name, str(value))]


def _render(kind: str, name: str, template: str, values: dict[str, Any]) -> None:
    try:
        ImmutableSandboxedEnvironment(undefined=StrictUndefined).from_string(template).render(values)
    except UndefinedError as error:
        raise Rejected({"injectors": [f"{name} uses an undefined field ({error})"]}) from None
    except SecurityError as error:
        raise Rejected({"injectors": [f"Encountered unsafe code execution: {error}"]}) from None
    except TemplateSyntaxError as error:
        message = f"Syntax error rendering template for {name} inside of {kind} ({error})"
        raise Rejected({"injectors": [message]}) from None


def check_values(kind: dict[str, Any], new: dict[str, Any], old: dict[str, Any] | None) -> None:
    """Check the values of a credential, and keep stored secrets that a request repeats as encrypted. Raise Rejected."""
    fields = {field["id"]: field for field in _fields(kind["inputs"])}
    for name, value in list(new["inputs"].items()):
        if name not in fields:
            raise Rejected({"inputs": [f"Additional properties are not allowed ('{name}' was unexpected)"]})
        field = fields[name]
        if value == ENCRYPTED and field.get("secret"):
            if not old:
                message = f"{ENCRYPTED} is a reserved keyword, and cannot be used for {name}."
                raise Rejected({"inputs": [message]})
            new["inputs"][name] = old["inputs"].get(name, "")
            continue
        expected = bool if field.get("type") == "boolean" else str
        if type(value) is not expected:
            raise Rejected({"inputs": {name: [f"{value!r} is not of type '{field.get('type', 'string')}'"]}})
        if field.get("choices") and value not in field["choices"]:
            raise Rejected({"inputs": {name: [f"{value!r} is not one of {field['choices']}"]}})
        if (
            field.get("format") == "ssh_private_key"
            and value
            and not re.match(r"-----BEGIN [A-Z ]*-----", value.strip())
        ):
            raise Rejected({"inputs": {name: ["Invalid certificate or key"]}})


def displayed(kind: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a credential without its secrets."""
    secrets = {field["id"] for field in _fields(kind["inputs"]) if field.get("secret")}
    return {name: ENCRYPTED if name in secrets and value else value for name, value in inputs.items()}
