# SPDX-License-Identifier: GPL-3.0-or-later
"""Page of the REST API of the V-IPU proxy, from its OpenAPI description."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from openipu.kubernetes.proxy.app import create

from .markdown import page, paragraph, table

_INTRODUCTION = """
This page is for authors of programs that ask the V-IPU proxy for partitions or free IPUs. The IPU operator uses the
same API. A running proxy serves the description as JSON at `/openapi.json`.

Requests and responses are JSON. See [V-IPU proxy](kubernetes-operator.md#v-ipu-proxy) for addresses and credentials.
"""


def pages() -> dict[str, str]:
    """Return the page of the API, by its path in docs/reference."""
    description = describe()
    parts = [*_requests(description), *_schemas(description)]
    return {"rest-api.md": page("REST API of the V-IPU proxy", _INTRODUCTION, parts)}


def describe() -> dict[str, Any]:
    """Return the OpenAPI description. The services behind the routes are not called for it."""
    nothing = cast(Any, None)
    return create(nothing, nothing, nothing, nothing, ("", "")).openapi()


def _requests(description: dict[str, Any]) -> Iterator[str]:
    yield "## Requests"
    for path, methods in description["paths"].items():
        for method, request in methods.items():
            yield f"### `{method.upper()} {path}`"
            yield paragraph(request["summary"] + ".")
            yield paragraph(request.get("description", ""))
            rows = [
                (f"`{each['name']}`", each["in"], _type(each["schema"]), each.get("description", ""))
                for each in request.get("parameters", ())
            ]
            yield table(("Parameter", "In", "Type", "Description"), rows)
            if "requestBody" in request:
                yield f"Body: {_body(request['requestBody'])}"
            answers = [
                (status, _body(answer), answer["description"]) for status, answer in request["responses"].items()
            ]
            yield table(("Status", "Body", "Meaning"), answers)


def _body(part: dict[str, Any]) -> str:
    content = part.get("content", {}).get("application/json", {})
    return _type(content["schema"]) if content.get("schema") else ""


def _schemas(description: dict[str, Any]) -> Iterator[str]:
    yield "## Objects"
    for name, schema in description["components"]["schemas"].items():
        yield f"### {name}"
        yield paragraph(schema.get("description", ""))
        required = schema.get("required", ())
        rows = [
            (f"`{key}`", _type(value), "yes" if key in required else "", _details(value))
            for key, value in schema.get("properties", {}).items()
        ]
        yield table(("Key", "Type", "Required", "Description"), rows)


def _details(schema: dict[str, Any]) -> str:
    text = str(schema.get("description", ""))
    if schema.get("default") not in (None, "", [], {}):
        text += f" Default: `{json.dumps(schema['default'])}`."
    return text.strip()


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    inner = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(inner, dict):
        return f"map of texts to {_type(inner)}"
    return f"`{schema.get('type', 'any')}`"
