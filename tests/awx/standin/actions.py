# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that are neither reading nor plain writing: lists, roles, surveys, launches, approvals, project updates."""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path
from typing import Any

import yaml
from starlette.responses import JSONResponse, Response

from tests.awx.standin import surveys, views
from tests.awx.standin.fields import Rejected, parse_variables
from tests.awx.standin.resource import Resource
from tests.awx.standin.resources import RESOURCES
from tests.awx.standin.store import Object, Store

_OUTCOMES = ("success_nodes", "failure_nodes", "always_nodes")
_SSH = [
    {"id": "username", "label": "Username", "type": "string"},
    {"id": "password", "label": "Password", "type": "string", "secret": True},
    {"id": "ssh_key_data", "label": "SSH Private Key", "type": "string", "format": "ssh_private_key", "secret": True},
    {"id": "ssh_key_unlock", "label": "Private Key Passphrase", "type": "string", "secret": True},
    {"id": "become_method", "label": "Privilege Escalation Method", "type": "string"},
    {"id": "become_username", "label": "Privilege Escalation Username", "type": "string"},
    {"id": "become_password", "label": "Privilege Escalation Password", "type": "string", "secret": True},
]
_OPENSTACK = [
    *({"id": name, "label": name, "type": "string"} for name in ("username", "host", "project", "project_domain_name")),
    *({"id": name, "label": name, "type": "string"} for name in ("domain", "region")),
    {"id": "password", "label": "Password (API Key)", "type": "string", "secret": True},
    {"id": "verify_ssl", "label": "Verify SSL", "type": "boolean", "default": True},
]
_REGISTRY = [
    {"id": "host", "label": "Authentication URL", "type": "string"},
    {"id": "username", "label": "Username", "type": "string"},
    {"id": "password", "label": "Password or Token", "type": "string", "secret": True},
    {"id": "verify_ssl", "label": "Verify SSL", "type": "boolean"},
]
# Managed credential types that the description of a POD may use: kind, namespace and fields.
MANAGED_TYPES: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "Machine": ("ssh", "ssh", _SSH),
    "Source Control": ("scm", "scm", _SSH[:4]),
    "Vault": (
        "vault",
        "vault",
        [
            {"id": "vault_password", "label": "Vault Password", "type": "string", "secret": True},
            {"id": "vault_id", "label": "Vault Identifier", "type": "string"},
        ],
    ),
    "OpenStack": ("cloud", "openstack", _OPENSTACK),
    "Container Registry": ("registry", "registry", _REGISTRY),
    "OpenShift or Kubernetes API Bearer Token": (
        "kubernetes",
        "kubernetes_bearer_token",
        [
            {"id": "host", "label": "API Endpoint", "type": "string"},
            {"id": "bearer_token", "label": "API authentication bearer token", "type": "string", "secret": True},
            {"id": "verify_ssl", "label": "Verify SSL", "type": "boolean", "default": True},
            {"id": "ssl_ca_cert", "label": "Certificate Authority data", "type": "string", "secret": True},
        ],
    ),
    "GitHub Personal Access Token": (
        "token",
        "github_token",
        [{"id": "token", "label": "Token", "type": "string", "secret": True}],
    ),
}


def add_defaults(store: Store, administrator: str, reader: str) -> None:
    """Create what a new AWX contains."""
    for name in (administrator, reader):
        values = {"username": name, "is_superuser": name == administrator, "is_system_auditor": False}
        store.add(RESOURCES["users"], {**values, "first_name": "", "last_name": "", "email": "", "password": ""})
    for name, (kind, namespace, fields) in MANAGED_TYPES.items():
        values = {"name": name, "description": "", "kind": kind, "namespace": namespace, "managed": True}
        store.add(RESOURCES["credential_types"], {**values, "inputs": {"fields": fields}, "injectors": {}})
    values = {"description": "", "organization": None, "credential": None, "pull": "", "managed": False}
    store.add(
        RESOURCES["execution_environments"],
        {**values, "name": "AWX EE (latest)", "image": "quay.io/ansible/awx-ee:latest"},
    )
    for name in ("controlplane", "default"):
        store.add(RESOURCES["instance_groups"], {"name": name})


def delete(store: Store, resource: Resource, item: Object) -> Response:
    """Delete an object, or raise Rejected."""
    if resource.name == "credential_types":
        if item["managed"]:
            raise Rejected({"detail": "Deletion not allowed for managed credential types"}, 403)
        if store.find("credentials", credential_type=item["id"]):
            raise Rejected({"detail": "Credential types that are in use cannot be deleted"}, 403)
    store.remove(item)
    return Response(status_code=resource.delete_status)


def start_update(store: Store, project: Object) -> None:
    """Start the update that AWX makes of each new project with source control. It ends when a client looks at it."""
    if project["scm_type"]:
        values = {"project": project["id"], "status": "pending", "scm_revision": "", "failed": False, "finished": None}
        update = store.add(RESOURCES["project_updates"], {**values, "event_processing_finished": False})
        project["_update"], project["status"] = update["id"], "pending"


def finish_update(store: Store, update: Object, projects: dict[str, Path]) -> None:
    """End a project update: the playbooks of the project become known, or the update fails."""
    project = store.get("projects", update["project"])
    if not project or update["status"] != "pending":
        return
    folder = projects.get(project["scm_url"])
    update |= {"finished": datetime.datetime.now(datetime.UTC).isoformat(), "event_processing_finished": True}
    update |= {"status": "successful" if folder else "failed", "failed": folder is None}
    project["status"] = update["status"]
    if folder:
        project["_playbooks"] = playbooks(folder)
        revision = hashlib.sha256("".join(project["_playbooks"]).encode()).hexdigest()[:40]
        project["scm_revision"] = update["scm_revision"] = revision


def playbooks(folder: Path) -> list[str]:
    """Return the playbooks of a project: YAML files with plays, outside of roles and tasks."""
    found = []
    for file in sorted([*folder.rglob("*.yml"), *folder.rglob("*.yaml")]):
        path = file.relative_to(folder)
        if {"roles", "tasks", "group_vars", "host_vars", ".venv", ".cache", "tests"} & set(path.parts[:-1]):
            continue
        try:
            plays = yaml.safe_load(file.read_text())
        except yaml.YAMLError:
            continue
        is_plays = isinstance(plays, list) and any(isinstance(play, dict) and _is_play(play) for play in plays)
        if is_plays:
            found.append(path.as_posix())
    return found


def _is_play(play: dict[str, Any]) -> bool:
    return "hosts" in play or any(key.rpartition(".")[2] == "import_playbook" for key in play)


def change_list(store: Store, item: Object, name: str, kind: str, body: Any) -> Response:
    """Add an object to a list or remove it. Raise Rejected."""
    key = body.get("id")
    if key is not None and (not isinstance(key, int) or isinstance(key, bool)):
        raise Rejected({"msg": '"id" field must be an integer.'})
    if not key:
        raise Rejected({"msg": f"{kind.rstrip('s').title()} 'id' field is missing."})
    sub = store.get(kind, key)
    if not sub:
        raise Rejected({"detail": f"{kind.rstrip('s').title()} matching query does not exist."})
    members = item["_lists"][name]
    if "disassociate" in body:
        if key in members:
            members.remove(key)
        if kind == "labels" and not _label_in_use(store, key):
            store.remove(sub)
        return Response(status_code=204)
    if key not in members:
        _check_member(store, item, name, sub)
        members.append(key)
    return Response(status_code=204)


def _label_in_use(store: Store, key: int) -> bool:
    return any(key in item["_lists"].get("labels", []) for items in store.objects.values() for item in items.values())


def _check_member(store: Store, item: Object, name: str, sub: Object) -> None:
    if name in _OUTCOMES:
        _check_node(store, item, name, sub)
    elif name == "credentials" and item["_resource"] == "job_templates":
        kind = store.get("credential_types", sub["credential_type"])
        assert kind
        types = {_credential_type(store, key) for key in item["_lists"][name]}
        if sub["credential_type"] in types:
            raise Rejected({"error": f"Cannot assign multiple {kind['name']} credentials."})
        if kind["kind"] not in ("ssh", "vault", "cloud", "net", "kubernetes"):
            raise Rejected({"error": f"Cannot assign a Credential of kind `{kind['kind']}`."})
    elif "unified_job_template" in item:
        _check_prompt(store, item, name)
    elif name == "galaxy_credentials":
        raise Rejected({"msg": "Credential must be a Galaxy credential, not " + str(sub["name"]) + "."})


def _credential_type(store: Store, key: int) -> Any:
    return store.objects["credentials"][key]["credential_type"]


def _check_prompt(store: Store, item: Object, name: str) -> None:
    template = store.get("unified_job_templates", item["unified_job_template"])
    if not template:
        raise Rejected({"msg": f"Cannot assign {name.rstrip('s')} when related template is null."})
    if not template.get(surveys.PROMPTS[name]):
        raise Rejected({"msg": f"Related template is not configured to accept {name} on launch."})


def _check_node(store: Store, item: Object, name: str, sub: Object) -> None:
    if item["workflow_job_template"] != sub["workflow_job_template"] or item["id"] == sub["id"]:
        raise Rejected({"Error": "Cycle detected."})
    if any(sub["id"] in item["_lists"][other] for other in _OUTCOMES if other != name):
        raise Rejected({"Error": "Relationship not allowed."})
    reached, ahead = set(), [sub["id"]]
    while ahead:
        key = ahead.pop()
        if key == item["id"]:
            raise Rejected({"Error": "Cycle detected."})
        if key not in reached:
            reached.add(key)
            node = store.objects["workflow_job_template_nodes"][key]
            ahead += [after for outcome in _OUTCOMES for after in node["_lists"][outcome]]


def change_role(store: Store, role: Object, name: str, body: Any) -> Response:
    """Grant a role to a team or user, or revoke it. Raise Rejected."""
    member = store.get(name, body.get("id"))
    if not member:
        raise Rejected({"msg": f"{name.rstrip('s').title()} 'id' field is missing."})
    item = role["object"]
    if name == "teams":
        if item["_resource"] == "organizations" and role["role_field"] in ("member_role", "admin_role"):
            problem = "You cannot assign an Organization participation role as a child role for a Team."
            raise Rejected({"msg": problem})
        if item["_resource"] == "credentials" and item["organization"] != member["organization"]:
            problem = "You cannot grant credential access to a team of a different organization"
            raise Rejected({"msg": problem})
    if "disassociate" in body:
        if member["id"] in role[name]:
            role[name].remove(member["id"])
    elif member["id"] not in role[name]:
        role[name].append(member["id"])
    return Response(status_code=204)


def act(store: Store, item: Object, name: str, method: str, body: Any) -> Response:
    """Answer a request for a part of an object. Raise Rejected."""
    surveyed = item["_resource"] in ("job_templates", "workflow_job_templates")
    if name == "survey_spec" and surveyed:
        return _survey(item, method, body)
    if name == "launch" and surveyed:
        return _launch(store, item, method, body)
    if name == "playbooks" and item["_resource"] == "projects":
        return JSONResponse(item.get("_playbooks", []))
    if name == "update" and item["_resource"] == "projects":
        if method == "POST":
            start_update(store, item)
            update = store.objects["project_updates"][item["_update"]]
            return JSONResponse({"project_update": update["id"], **views.show(store, update)}, 202)
        return JSONResponse({"can_update": bool(item["scm_type"])})
    if name == "create_approval_template" and item["_resource"] == "workflow_job_template_nodes":
        return _approval(store, item, method, body)
    raise Rejected({"detail": "The requested resource could not be found."}, 404)


def _survey(item: Object, method: str, body: Any) -> Response:
    if method == "OPTIONS":
        return JSONResponse({"actions": {"GET": {}, "POST": {}}}, headers={"Allow": "GET, POST, DELETE, HEAD, OPTIONS"})
    if method == "POST":
        item["_survey"] = surveys.checked(body, item.get("_survey") or {})
        return Response(status_code=200)
    if method == "DELETE":
        item["_survey"] = {}
        return Response(status_code=200)
    return JSONResponse(surveys.displayed(item.get("_survey") or {}))


def _launch(store: Store, item: Object, method: str, body: Any) -> Response:
    if method != "POST":
        needed = [q["variable"] for q in (item.get("_survey") or {}).get("spec", []) if q["required"]]
        return JSONResponse({"survey_enabled": item["survey_enabled"], "variables_needed_to_start": needed})
    answers = parse_variables(body.get("extra_vars") or {})
    if errors := surveys.answer_errors(item, answers):
        raise Rejected({"variables_needed_to_start": errors})
    ignored = {"extra_vars": {key: answers[key] for key in surveys.rejected_variables(item, answers)}}
    ignored |= {key: body[key] for key, ask in surveys.PROMPTS.items() if key in body and not item.get(ask)}
    kept = {key: value for key, value in ignored.items() if value != {}}
    accepted = {key: value for key, value in answers.items() if key not in ignored["extra_vars"]}
    job = _job(store, item, accepted)
    kind = RESOURCES[job["_resource"]].type
    return JSONResponse({kind: job["id"], "ignored_fields": kept, **views.show(store, job)}, 201)


def _job(store: Store, template: Object, variables: Object) -> Object:
    """Add a job that waits, or a workflow that runs until its approval, because the stand-in runs no jobs."""
    workflow = template["_resource"] == "workflow_job_templates"
    kind, field = ("workflow_jobs", "workflow_job_template") if workflow else ("jobs", "job_template")
    values = {"name": template["name"], field: template["id"], "status": "running" if workflow else "pending"}
    created = datetime.datetime.now(datetime.UTC).isoformat()
    return store.add(RESOURCES[kind], {**values, "created": created, "extra_vars": json.dumps(variables)})


def _approval(store: Store, node: Object, method: str, body: Any) -> Response:
    resource = RESOURCES["workflow_approval_templates"]
    if method == "OPTIONS":
        return JSONResponse(views.options(resource.name), headers={"Allow": "GET, POST, HEAD, OPTIONS"})
    if method != "POST":
        return JSONResponse({})
    values = store.convert(resource, body, None)
    approval = store.add(resource, values)
    node["unified_job_template"] = approval["id"]
    return JSONResponse(views.show(store, approval), 201)
