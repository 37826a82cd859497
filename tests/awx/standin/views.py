# SPDX-License-Identifier: GPL-3.0-or-later
"""Representation of objects: links, summaries of related objects, and encrypted values.

Sources: ``get_related`` and ``get_summary_fields`` of the serializers of AWX 24.6.1.
"""

from __future__ import annotations

import copy
from urllib.parse import quote

from tests.awx.standin import credentials, surveys
from tests.awx.standin.checks import NOTIFICATIONS
from tests.awx.standin.resources import RESOURCES
from tests.awx.standin.store import Object, Store

BASE = "/api/v2"
_SURVEYED = ("job_templates", "workflow_job_templates")
# Description of a launch, for the command line of AWX. Only the answers of a survey are used.
_ANSWERS = {"type": "json", "required": False, "read_only": False, "label": "Extra vars"}
LAUNCH: Object = {"name": "Launch", "actions": {"POST": {"extra_vars": _ANSWERS}}}


def url(item: Object) -> str:
    """Return the path of an object."""
    return f"{BASE}/{item['_resource']}/{item['id']}/"


def show(store: Store, item: Object) -> Object:
    """Return an object as the API does."""
    resource = RESOURCES[item["_resource"]]
    shown: Object = {"id": item["id"], "type": resource.type, "url": url(item)}
    shown |= {"related": _related(store, item), "summary_fields": _summary(store, item)}
    shown |= {
        name: copy.deepcopy(item.get(name)) for name in resource.fields if name not in ("user", "team", "password")
    }
    if item["_resource"] == "credentials":
        shown["inputs"] = credentials.displayed(_credential_type(store, item), item["inputs"])
        shown["kind"] = _credential_type(store, item).get("namespace") or ""
    elif item["_resource"] == "notification_templates":
        _hide_passwords(shown)
    elif "extra_data" in shown:
        template = store.get("unified_job_templates", item["unified_job_template"])
        for name in surveys.passwords(template) & set(shown["extra_data"]):
            shown["extra_data"][name] = surveys.ENCRYPTED
    for name in resource.lists:
        if name.endswith("_nodes"):
            shown[name] = list(item["_lists"][name])
    if item["_resource"] == "tokens":
        shown["token"] = item["_token"]
    return shown


def _credential_type(store: Store, item: Object) -> Object:
    found = store.get("credential_types", item["credential_type"])
    assert found
    return found


def _hide_passwords(shown: Object) -> None:
    options = shown["notification_configuration"]
    for name, (kind, _default) in NOTIFICATIONS.get(shown["notification_type"], {}).items():
        # AWX encrypts empty passwords, too.
        if kind == "password" and name in options:
            options[name] = surveys.ENCRYPTED


def _related(store: Store, item: Object) -> dict[str, str]:
    resource, here = RESOURCES[item["_resource"]], url(item)
    related = {"named_url": f"{BASE}/{resource.name}/{quote(named_url(store, item), safe='+')}/"}
    for name, field in resource.fields.items():
        target = store.get(field.to, item.get(name)) if field.kind == "reference" else None
        if target:
            related[name] = url(target)
    for name in (*resource.lists, *resource.children):
        related[name] = f"{here}{name}/"
    if resource.roles:
        related["object_roles"] = f"{here}object_roles/"
    if resource.name in ("teams", "users"):
        related["roles"] = f"{here}roles/"
    if resource.name in _SURVEYED:
        related |= {"survey_spec": f"{here}survey_spec/", "launch": f"{here}launch/"}
    if resource.name == "projects":
        related |= {"playbooks": f"{here}playbooks/", "update": f"{here}update/"}
        if update := store.get("project_updates", item.get("_update")):
            related["current_update" if update["status"] == "pending" else "last_update"] = url(update)
    if resource.name == "workflow_job_template_nodes":
        related["create_approval_template"] = f"{here}create_approval_template/"
    return related


def named_url(store: Store, item: Object) -> str:
    """Return the name of an object that is unique in its kind: its parts joined by ``++``, with references by name."""
    resource = RESOURCES[item["_resource"]]
    parts = []
    for name in resource.named_url:
        field, value = resource.fields[name], item.get(name)
        if field.kind == "reference":
            target = store.get(field.to, value)
            if field.to == "credential_types" and target:
                value = f"{target['name']}+{target['kind']}"
            elif target:
                value = (
                    named_url(store, target)
                    if field.to in ("inventories", "workflow_job_templates")
                    else target["name"]
                )
            else:
                value = ""
        parts.append(str(value))
    return ("+" if resource.name == "credential_types" else "++").join(parts)


def _summary(store: Store, item: Object) -> Object:
    resource = RESOURCES[item["_resource"]]
    summary: Object = {}
    for name, field in resource.fields.items():
        target = store.get(field.to, item.get(name)) if field.kind == "reference" else None
        if target:
            summary[name] = _brief(target)
    if resource.roles:
        summary["object_roles"] = {
            name: {"id": key, "name": name.removesuffix("_role").replace("_", " ").title()}
            for name, key in item["_roles"].items()
        }
    if "labels" in resource.lists:
        labels = [store.objects["labels"][key] for key in item["_lists"]["labels"]]
        results = [{"id": label["id"], "name": label["name"]} for label in labels]
        summary["labels"] = {"count": len(labels), "results": results}
    if resource.name == "job_templates":
        summary["credentials"] = [_brief(store.objects["credentials"][key]) for key in item["_lists"]["credentials"]]
    if resource.name == "projects" and (update := store.get("project_updates", item.get("_update"))):
        name = "current_update" if update["status"] == "pending" else "last_update"
        summary[name] = {"id": update["id"], "status": update["status"]}
    return summary


def _brief(item: Object) -> Object:
    brief = {"id": item["id"]}
    for name in ("name", "username", "description", "kind", "image"):
        if name in item:
            brief[name] = item[name]
    if item["_resource"] in ("job_templates", "workflow_job_templates", "projects", "inventory_sources"):
        kinds = {"job_templates": "job", "workflow_job_templates": "workflow_job", "projects": "project_update"}
        brief["unified_job_type"] = kinds.get(item["_resource"], "inventory_update")
    if item["_resource"] == "workflow_approval_templates":
        brief |= {"unified_job_type": "workflow_approval", "timeout": item["timeout"]}
    return brief


def show_role(store: Store, key: int) -> Object:
    """Return a role of an object."""
    role = store.roles[key]
    item, here = role["object"], f"{BASE}/roles/{key}/"
    kind = RESOURCES[item["_resource"]].type
    return {
        "id": key,
        "type": "role",
        "url": here,
        "related": {"users": f"{here}users/", "teams": f"{here}teams/", kind: url(item)},
        "summary_fields": {"resource_name": item["name"], "resource_type": kind, "resource_id": item["id"]},
        "name": role["role_field"].removesuffix("_role").replace("_", " ").title(),
        "description": "",
    }


def options(name: str) -> Object:
    """Return the description of a resource: the fields that requests may set."""
    kinds = {"text": "string", "reference": "id", "data": "json", "variables": "json"}
    fields = {
        key: {
            "type": kinds.get(field.kind, field.kind),
            "required": field.required,
            "read_only": False,
            "label": key,
            "filterable": field.kind != "data",
            **({"choices": [[value, str(value)] for value in field.choices]} if field.choices else {}),
        }
        for key, field in RESOURCES[name].fields.items()
        if not field.read_only
    }
    return {
        "name": name,
        "actions": {"POST": fields, "GET": fields},
        "types": [RESOURCES[name].type],
        "search_fields": ["description", RESOURCES[name].identity],
    }
