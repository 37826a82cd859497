# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of whole objects, as the serializers of AWX 24.6.1 make them after the conversion of fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dateutil.rrule import rrulestr

from tests.awx.standin import credentials, messages, surveys
from tests.awx.standin.fields import Rejected
from tests.awx.standin.store import Object, Store

# Options of the kinds of notifications that are used: type and default of each. Without a default, they are required.
NOTIFICATIONS: dict[str, dict[str, tuple[str, Any]]] = {
    "webhook": {
        "url": ("string", ...),
        "http_method": ("string", "POST"),
        "disable_ssl_verification": ("bool", False),
        "username": ("string", ""),
        "password": ("password", ""),
        "headers": ("object", ...),
    },
    "email": {
        "host": ("string", ...),
        "port": ("int", ...),
        "username": ("string", ...),
        "password": ("password", ...),
        "use_tls": ("bool", ...),
        "use_ssl": ("bool", ...),
        "sender": ("string", ...),
        "recipients": ("list", ...),
        "timeout": ("int", 30),
    },
    "slack": {"token": ("password", ...), "channels": ("list", ...)},
}
_TYPES = {"string": str, "int": int, "bool": bool, "list": list, "password": str, "object": dict}


def check(store: Store, resource: str, new: Object, old: Object | None, body: Object) -> None:
    """Check an object with its new values, which the check may complete. Raise Rejected."""
    if resource in _CHECKS:
        _CHECKS[resource](store, new, old, body)


def _credential_type(store: Store, new: Object, old: Object | None, body: Object) -> None:
    if old and old["managed"]:
        raise Rejected({"detail": "Modifications not allowed for managed credential types"}, 403)
    if old and new["inputs"] != old["inputs"] and store.find("credentials", credential_type=old["id"]):
        raise Rejected({"detail": "Modifications to inputs are not allowed for credential types that are in use"}, 403)
    if "kind" in body and new["kind"] not in ("cloud", "net"):
        raise Rejected({"kind": [f"Must be 'cloud' or 'net', not {new['kind']}"]})
    credentials.check_inputs(new["inputs"])
    credentials.check_injectors(new["injectors"], new["inputs"])


def _credential(store: Store, new: Object, old: Object | None, _body: Object) -> None:
    if old and old["managed"]:
        raise Rejected({"detail": "Modifications not allowed for managed credentials"}, 403)
    owners = [name for name in ("organization", "team", "user") if new.get(name)]
    if not old and len(owners) != 1:
        problem = (
            f"Only one of 'user', 'team', or 'organization' should be provided, received {', '.join(owners)} fields."
        )
        raise Rejected({"detail": [problem if owners else "Missing 'user', 'team', or 'organization'."]})
    if new.get("team"):
        team = store.get("teams", new["team"])
        new["organization"] = team and team["organization"]
    kind = store.get("credential_types", new["credential_type"])
    assert kind
    credentials.check_values(kind, new, old)


def _environment(store: Store, new: Object, _old: Object | None, _body: Object) -> None:
    credential = store.get("credentials", new["credential"])
    if credential and _kind(store, credential) != "registry":
        message = "Only Container Registry credentials can be associated with an Execution Environment"
        raise Rejected({"credential": [message]})


def _kind(store: Store, credential: Object) -> str:
    found = store.get("credential_types", credential["credential_type"])
    return str(found and found["kind"])


def _project(_store: Store, new: Object, _old: Object | None, _body: Object) -> None:
    errors = {}
    if new["scm_type"] == "":
        for name in ("scm_update_on_launch", "scm_delete_on_update", "scm_track_submodules", "scm_clean"):
            if new[name]:
                raise Rejected({name: ["Update options must be set to false for manual projects."]})
    if new["scm_branch"] and new["scm_type"] == "archive":
        errors["scm_branch"] = ["SCM branch cannot be used with archive projects."]
    if new["scm_refspec"] and new["scm_type"] != "git":
        errors["scm_refspec"] = ["SCM refspec can only be used with git projects."]
    if errors:
        raise Rejected(errors)


def _inventory_source(store: Store, new: Object, _old: Object | None, body: Object) -> None:
    project = store.get("projects", new["source_project"])
    if new["source"] == "scm":
        if ("source" in body or "source_project" in body) and not project:
            raise Rejected({"source_project": ["Project required for scm type sources."]})
    elif redundant := [name for name in ("source_project", "source_path", "scm_branch") if body.get(name)]:
        raise Rejected({"detail": [f"Cannot set {' '.join(redundant)} if not SCM type."]})
    if project and project["scm_type"] == "":
        raise Rejected({"source_project": ["Cannot use manual project for SCM-based inventory."]})
    if new["scm_branch"] and project and not project["allow_override"]:
        raise Rejected({"scm_branch": ["Project does not allow overriding branch."]})


def _job_template(store: Store, new: Object, _old: Object | None, _body: Object) -> None:
    project = store.get("projects", new["project"])
    if not project:
        raise Rejected({"project": ["This field is required."]})
    if not new["inventory"] and not new["ask_inventory_on_launch"]:
        raise Rejected({"inventory": ["You must either set a default value or ask to prompt on launch."]})
    if not new["playbook"]:
        raise Rejected({"playbook": ["Must select playbook for project."]})
    if not project["allow_override"] and new["playbook"] not in project.get("_playbooks", []):
        raise Rejected({"playbook": ["Playbook not found for project."]})
    for name in ("scm_branch", "ask_scm_branch_on_launch"):
        if new[name] and not project["allow_override"]:
            raise Rejected({name: ["Project does not allow overriding branch."]})
    if new["host_config_key"] and not new["inventory"]:
        raise Rejected({"host_config_key": ["Cannot enable provisioning callback without an inventory set."]})
    new["organization"] = project["organization"]


def _workflow_template(store: Store, new: Object, _old: Object | None, _body: Object) -> None:
    credential = store.get("credentials", new["webhook_credential"])
    if credential and _kind(store, credential) != "token":
        raise Rejected({"webhook_credential": ["Must be a Personal Access Token."]})


def _saved_launch(store: Store, new: Object, old: Object | None, required: bool) -> None:
    template = store.get("unified_job_templates", new["unified_job_template"])
    if not template or template["_resource"] == "workflow_approval_templates":
        return
    for name in surveys.passwords(template):
        if new["extra_data"].get(name) == surveys.ENCRYPTED:
            if not old or name not in old["extra_data"]:
                message = f"Provided variable {name} has no database value to replace with."
                raise Rejected({"extra_data": [message]})
            new["extra_data"][name] = old["extra_data"][name]
    if errors := surveys.prompt_errors(template, new, required):
        raise Rejected(errors)


def _node(store: Store, new: Object, old: Object | None, _body: Object) -> None:
    _saved_launch(store, new, old, required=False)


def _schedule(store: Store, new: Object, old: Object | None, body: Object) -> None:
    if "rrule" in body:
        check_rrule(new["rrule"])
    project = store.get("projects", new["unified_job_template"])
    if project and project["scm_type"] == "":
        raise Rejected({"unified_job_template": ["Manual Project cannot have a schedule set."]})
    _saved_launch(store, new, old, required=True)


def check_rrule(value: str) -> None:
    """Check the recurrence rule of a schedule. Raise Rejected."""
    errors = []
    starts = re.findall(r"(DTSTART(?:;[^:]+)?:[0-9]+T[0-9]+Z?)", value)
    if not starts:
        errors.append("Valid DTSTART required in rrule. Value should start with: DTSTART:YYYYMMDDTHHMMSSZ")
    if re.findall(r"DTSTART:[0-9]+T[0-9]+ ", value):
        errors.append("DTSTART cannot be a naive datetime.  Specify ;TZINFO= or YYYYMMDDTHHMMSSZZ.")
    if len(starts) > 1:
        errors.append("Multiple DTSTART is not supported.")
    if "rrule:" not in value.lower():
        errors.append("One or more rule required in rrule.")
    for word in ("exdate", "rdate"):
        if f"{word}:" in value.lower():
            raise Rejected({"rrule": [f"{word.upper()} not allowed in rrule."]})
    for rule in re.findall(r"(RULE:\S*)", value):
        if "interval" not in rule.lower():
            errors.append(f"INTERVAL required in rrule: {rule}")
        elif "secondly" in rule.lower():
            errors.append(f"SECONDLY is not supported: {rule}")
        if re.match(r".*?BYDAY[:=][0-9]+[a-zA-Z]{2}", rule):
            errors.append(f"BYDAY with numeric prefix not supported: {rule}")
        if "COUNT" in rule and "UNTIL" in rule:
            errors.append(f"RRULE may not contain both COUNT and UNTIL: {rule}")
        if (count := re.search(r"COUNT=([0-9]+)", rule)) and int(count[1]) > 999:
            errors.append(f"COUNT > 999 is unsupported: {rule}")
    try:
        rrulestr(value, forceset=True)
    except Exception as error:
        errors.append(f"rrule parsing failed validation: {error}")
    if errors:
        raise Rejected({"rrule": errors})


def _notification(_store: Store, new: Object, old: Object | None, body: Object) -> None:
    if "notification_configuration" in body:
        _notification_options(new, old)
    if body.get("messages"):
        if problems := messages.errors(new["messages"], new["notification_type"]):
            raise Rejected({"messages": problems})
        for event, kept in ((old or {}).get("messages") or {}).items():
            new["messages"][event] = new["messages"].get(event) or kept
    if new["messages"] is not None:
        for event in ("started", "success", "error", "workflow_approval"):
            new["messages"].setdefault(event, None)


def _notification_options(new: Object, old: Object | None) -> None:
    options, errors = new["notification_configuration"], []
    expected = NOTIFICATIONS.get(new["notification_type"], {})
    for name, (_kind, default) in expected.items():
        if default is not ...:
            options.setdefault(name, default)
    if missing := [name for name in expected if name not in options]:
        errors.append(f"Missing required fields for Notification Configuration: {missing}.")
    for name, (kind, _default) in expected.items():
        if name not in options:
            continue
        value = options[name]
        if type(value) is not _TYPES[kind]:
            errors.append(f"Configuration field '{name}' incorrect type, expected {kind}.")
        elif kind == "list" and not value:
            errors.append(f"No values specified for field '{name}'")
        elif name == "http_method" and value.lower() not in ("put", "post"):
            errors.append("HTTP method must be either 'POST' or 'PUT'.")
        elif kind == "password" and value == surveys.ENCRYPTED and old:
            options[name] = old["notification_configuration"][name]
    if errors:
        raise Rejected({"__all__": errors})


_CHECKS: dict[str, Callable[[Store, Object, Object | None, Object], None]] = {
    "credential_types": _credential_type,
    "credentials": _credential,
    "execution_environments": _environment,
    "projects": _project,
    "inventory_sources": _inventory_source,
    "job_templates": _job_template,
    "workflow_job_templates": _workflow_template,
    "workflow_job_template_nodes": _node,
    "schedules": _schedule,
    "notification_templates": _notification,
}
