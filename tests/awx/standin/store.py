# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of the stand-in and their relations. Deletion cascades as in the models of AWX 24.6.1."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from tests.awx.standin.fields import MISSING, Field, Rejected, convert
from tests.awx.standin.resource import Resource
from tests.awx.standin.resources import RESOURCES, UNIFIED

Object = dict[str, Any]


class Store:
    """All objects by resource and ID. IDs are unique across resources, as those of templates are in AWX."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[int, Object]] = {name: {} for name in RESOURCES}
        self.roles: dict[int, Object] = {}
        self._last = 0

    def new_id(self) -> int:
        """Return the next ID."""
        self._last += 1
        return self._last

    def exists(self, resource: str, key: int) -> bool:
        """Return whether an object exists. ``unified_job_templates`` stands for all kinds of templates."""
        return any(key in self.objects[name] for name in self._kinds(resource))

    def get(self, resource: str, key: int | None) -> Object | None:
        """Return an object, or None."""
        found = (self.objects[name].get(key) for name in self._kinds(resource) if key is not None)
        return next((item for item in found if item), None)

    def all(self, resource: str) -> Iterator[Object]:
        """Yield the objects of a resource."""
        for name in self._kinds(resource):
            yield from self.objects[name].values()

    def find(self, resource: str, **values: Any) -> Object | None:
        """Return the first object with all these values."""
        return next(
            (item for item in self.all(resource) if all(item.get(key) == value for key, value in values.items())), None
        )

    @staticmethod
    def _kinds(resource: str) -> tuple[str, ...]:
        return UNIFIED if resource == "unified_job_templates" else (resource,)

    def convert(self, resource: Resource, body: Any, old: Object | None) -> Object:
        """Return the values of a request, converted and complete for a new object. Raise Rejected."""
        if not isinstance(body, dict):
            raise Rejected({"detail": "JSON parse error - object expected"})
        values: Object = {}
        errors: dict[str, list[str]] = {}
        for name, field in resource.fields.items():
            value = MISSING if field.read_only or (old and field.create_only) else body.get(name, MISSING)
            if value is MISSING:
                if old is None and field.required:
                    errors[name] = ["This field is required."]
                elif old is None:
                    values[name] = _default(field)
                continue
            try:
                values[name] = convert(field, value, self.exists)
            except ValueError as error:
                errors[name] = [str(error)]
        if errors:
            raise Rejected(errors)
        return values

    def check_unique(self, resource: Resource, values: Object, key: int | None) -> None:
        """Raise Rejected when another object has the same unique values."""
        if not resource.unique or any(values.get(name) is None for name in resource.unique):
            return
        for other in self.objects[resource.name].values():
            if other["id"] != key and all(other.get(name) == values[name] for name in resource.unique):
                raise Rejected(_duplicate(resource))

    def add(self, resource: Resource, values: Object) -> Object:
        """Store a new object with its roles."""
        item: Object = {"id": self.new_id(), **values, "_resource": resource.name, "_lists": {}}
        if resource.name == "workflow_job_template_nodes":
            item["identifier"] = values["identifier"] or str(uuid.uuid4())
        item["_lists"] = {name: [] for name in resource.lists}
        item["_roles"] = {f"{role}_role": self._add_role(item, f"{role}_role") for role in resource.roles}
        self.objects[resource.name][item["id"]] = item
        return item

    def _add_role(self, item: Object, name: str) -> int:
        key = self.new_id()
        self.roles[key] = {"id": key, "role_field": name, "object": item, "teams": [], "users": []}
        return key

    def remove(self, item: Object) -> None:
        """Delete an object, those that depend on it, and its places in lists."""
        if self.objects[item["_resource"]].pop(item["id"], None) is None:
            return
        for key in item["_roles"].values():
            del self.roles[key]
        for role in self.roles.values():
            for members, kind in (("teams", "teams"), ("users", "users")):
                if item["_resource"] == kind and item["id"] in role[members]:
                    role[members].remove(item["id"])
        for resource in RESOURCES.values():
            for other in list(self.objects[resource.name].values()):
                self._forget(resource, other, item)
        if item["_resource"] == "workflow_job_template_nodes":
            approval = self.get("workflow_approval_templates", item["unified_job_template"])
            if approval:
                self.remove(approval)

    def _forget(self, resource: Resource, other: Object, item: Object) -> None:
        for name, kind in resource.lists.items():
            if item["_resource"] == kind and item["id"] in other["_lists"][name]:
                other["_lists"][name].remove(item["id"])
        for name, field in resource.fields.items():
            if (
                field.kind == "reference"
                and other.get(name) == item["id"]
                and item["_resource"] in self._kinds(field.to)
            ):
                if field.deletes:
                    self.remove(other)
                    return
                other[name] = None


def _default(field: Field) -> Any:
    return dict(field.default) if isinstance(field.default, dict) else field.default


def _duplicate(resource: Resource) -> Object:
    if resource.name in ("job_templates", "workflow_job_templates", "inventory_sources"):
        names = ", ".join(resource.unique)
        return {"__all__": [f"{resource.label} with this ({names}) combination already exists."]}
    titles = [name.replace("_", " ").capitalize() for name in resource.unique]
    if len(titles) == 1:
        return {resource.unique[0]: [f"{resource.label} with this {titles[0]} already exists."]}
    return {"__all__": [f"{resource.label} with this {', '.join(titles[:-1])} and {titles[-1]} already exists."]}
