# SPDX-License-Identifier: GPL-3.0-or-later
"""Filtering, order and pages of lists.

The source is the documentation of the API of AWX 24.6.1 and its filter backends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from tests.awx.standin.fields import Rejected
from tests.awx.standin.resource import Resource
from tests.awx.standin.resources import RESOURCES
from tests.awx.standin.store import Object, Store

_CONTROL = ("page", "page_size", "order_by", "search", "format")
_COMPARISONS = ("exact", "iexact", "contains", "icontains", "startswith", "istartswith", "in", "isnull")


def listed(store: Store, items: Iterable[Object], parameters: list[tuple[str, str]]) -> list[Object]:
    """Return the objects that match the filters. Raise Rejected for an unknown field.

    Filters with ``or__`` match when any of them does.
    """
    found = list(items)
    alternatives = [(name.removeprefix("or__"), value) for name, value in parameters if name.startswith("or__")]
    for name, value in parameters:
        if name in _CONTROL or name.startswith("or__"):
            continue
        inverted, field = name.startswith("not__"), name.removeprefix("not__")
        found = [item for item in found if matches(store, item, field, value) != inverted]
    if alternatives:
        found = [item for item in found if any(matches(store, item, name, value) for name, value in alternatives)]
    order = next((value for name, value in parameters if name == "order_by"), "id")
    name = order.lstrip("-")
    return sorted(
        found,
        key=lambda item: item["id"] if name == "id" else str(item.get(name, "")),
        reverse=order.startswith("-"),
    )


def matches(store: Store, item: Object, path: str, value: str) -> bool:
    """Return whether a field of an object, or of a related one, has the value."""
    *names, last = path.split("__")
    comparison = last if last in _COMPARISONS else "exact"
    names = names if last in _COMPARISONS else [*names, last]
    current: Any = item
    for position, name in enumerate(names):
        resource = RESOURCES[current["_resource"]]
        if name == "type":
            return _compare(resource.type, comparison, value)
        if name not in ("id", "pk") and name not in resource.fields:
            if _of_another_kind(current, name):
                return False
            raise Rejected({"detail": f"{resource.label or resource.name} has no field named '{name}'"})
        found = current["id"] if name in ("id", "pk") else current.get(name)
        if position == len(names) - 1:
            return _compare(found, comparison, value)
        current = store.get(resource.fields[name].to, found)
        if current is None:
            return False
    return False


def _of_another_kind(item: Object, name: str) -> bool:
    """Return whether a field belongs to other kinds of templates, which share one list."""
    return name == "organization" and item["_resource"] in ("inventory_sources", "workflow_approval_templates")


def _compare(found: Any, comparison: str, value: str) -> bool:
    if comparison == "isnull":
        return (found is None) == (value.lower() in ("true", "1"))
    if comparison == "in":
        return str(found) in value.split(",")
    if value.lower() in ("none", "null") and comparison == "exact":
        return found is None
    text = str(found)
    if comparison.startswith("i"):
        text, value, comparison = text.lower(), value.lower(), comparison[1:]
    if comparison == "contains":
        return value in text
    return text.startswith(value) if comparison == "startswith" else text == value


def page(items: list[Object], path: str, parameters: list[tuple[str, str]]) -> Object:
    """Return one page of a list, with links to the next and the previous one. Raise Rejected for an unknown page."""
    chosen = dict(parameters)
    try:
        number, size = int(chosen.get("page", 1)), min(int(chosen.get("page_size", 25)), 200)
    except ValueError:
        raise Rejected({"detail": "Invalid page."}, 404) from None
    pages = max(1, -(-len(items) // size))
    if not 1 <= number <= pages:
        raise Rejected({"detail": "Invalid page."}, 404)

    def link(target: int) -> str | None:
        if not 1 <= target <= pages or target == number:
            return None
        return f"{path}?{urlencode([pair for pair in parameters if pair[0] != 'page'] + [('page', str(target))])}"

    start = (number - 1) * size
    return {
        "count": len(items),
        "next": link(number + 1),
        "previous": link(number - 1),
        "results": items[start : start + size],
    }


def check_fields(resource: Resource, parameters: list[tuple[str, str]]) -> None:
    """Raise Rejected for filters by unknown fields, which an empty list would not notice."""
    known = {*resource.fields, "id", "pk", "type"}
    for name, _value in parameters:
        field = name.removeprefix("or__").removeprefix("not__").split("__")[0]
        if name not in _CONTROL and field not in known:
            raise Rejected({"detail": f"{resource.label or resource.name} has no field named '{field}'"})
