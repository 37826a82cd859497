# SPDX-License-Identifier: GPL-3.0-or-later
"""Reference of the custom resource in Markdown, from its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_CONSTRAINTS = {
    "default": "default",
    "minimum": "at least",
    "maximum": "at most",
    "minLength": "characters, at least",
    "maxLength": "characters, at most",
    "minItems": "items, at least",
    "maxItems": "items, at most",
    "pattern": "pattern",
}


def page(crd: Mapping[str, Any]) -> str:
    """Return the reference of a custom resource."""
    spec = crd["spec"]
    names = spec["names"]
    lines = [f"# {names['kind']}", ""]
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        short = ", ".join(f"`{each}`" for each in names.get("shortNames", []))
        lines += [
            schema["description"],
            "",
            f"* API version: `{spec['group']}/{version['name']}`",
            f"* Scope: {spec['scope']}",
            f"* Names for kubectl: `{names['plural']}`, `{names['singular']}`{', ' if short else ''}{short}",
            f"* Sub-resources: {', '.join(f'`{each}`' for each in version.get('subresources', {}))}",
            "",
        ]
        for part in ("spec", "status"):
            found = schema["properties"].get(part)
            if found:
                lines += [f"## {part.capitalize()}", "", found.get("description", ""), ""]
                lines += ["| Field | Type | Description |", "| --- | --- | --- |", *_rows(part, found), ""]
    return "\n".join(lines)


def _rows(prefix: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield a row for each field of an object, and for the fields inside it."""
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}.{name}"
        facts = [field.get("description", "").strip()]
        facts += ["Required."] if name in required else []
        if choices := field.get("enum"):
            facts.append(f"One of {', '.join(f'`{each}`' for each in choices)}.")
        limits = [f"{text} `{field[key]}`" for key, text in _CONSTRAINTS.items() if key in field]
        facts += [f"({', '.join(limits)})"] if limits else []
        text = " ".join(filter(None, facts)).replace("|", "\\|").replace("\n", " ")
        yield f"| `{path}` | {_type(field)} | {text} |"
        inside = field.get("items", field)
        yield from _rows(f"{path}[]" if "items" in field else path, inside)


def _type(field: Mapping[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = str(field.get("type", "any"))
    if kind == "array":
        return f"list of {_type(field['items'])}"
    values = field.get("additionalProperties")
    if kind == "object" and isinstance(values, Mapping):
        return f"map of {_type(values)}"
    return kind
