# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the modules of awx.awx, adjusted to the object that exists, so that equal objects are not written. No I/O.

The modules write more than necessary. They compare encrypted values with their plain text, and defaults that AWX adds
with options that omit them. They compare nodes of workflows with fields that only a request has. Each function has a
test with the real modules in ``tests/awx``.
"""

from __future__ import annotations

import copy
import typing as t

Object = dict[str, t.Any]
ENCRYPTED = "$encrypted$"
_EVENTS = ("started", "success", "error", "workflow_approval")
_NODE_FIELDS = (
    *("extra_data", "scm_branch", "job_type", "job_tags", "skip_tags", "limit", "diff_mode", "verbosity", "forks"),
    *("job_slice_count", "timeout", "all_parents_must_converge"),
)
OUTCOMES = ("success_nodes", "failure_nodes", "always_nodes")
_JOBS = {
    "job": "job_template",
    "workflow_job": "workflow_job_template",
    "project_update": "project",
    "inventory_update": "inventory_source",
    "workflow_approval": "workflow_approval",
}


def keep_secrets(desired: t.Any, actual: t.Any) -> t.Any:
    """Return a desired value with the encrypted parts of the actual one, which stand for the stored secrets."""
    if actual == ENCRYPTED:
        return ENCRYPTED
    if isinstance(desired, dict) and isinstance(actual, dict):
        return {key: keep_secrets(value, actual.get(key)) for key, value in desired.items()}
    return desired


def credential_type(desired: Object) -> Object:
    """Add the type of fields that AWX adds."""
    fields = (desired.get("inputs") or {}).get("fields")
    if not isinstance(fields, list):
        return desired
    typed = [{**field, "type": field.get("type", "string")} for field in fields]
    return {**desired, "inputs": {**desired["inputs"], "fields": typed}}


def credential(desired: Object, actual: Object | None, update_secrets: bool) -> Object:
    """Keep what administrators entered: other inputs, and secrets unless they are to be updated."""
    update = bool(desired.get("update_secrets", True)) and update_secrets
    result = {**desired, "update_secrets": update}
    if actual is None:
        return result
    inputs = actual.get("inputs") or {}
    given = desired.get("inputs") or {}
    merged = {**inputs, **(given if update else keep_secrets(given, inputs))}
    result.pop("inputs", None)
    if merged != inputs:
        # The encrypted inputs stay as they are: AWX keeps the stored value of each.
        result["inputs"] = merged
    return result


def notification(desired: Object, actual: Object | None, update_secrets: bool) -> Object:
    """Keep secrets, defaults and messages that AWX has."""
    if actual is None:
        return desired
    result = dict(desired)
    options = actual.get("notification_configuration") or {}
    given = desired.get("notification_configuration") or {}
    merged = {**options, **(given if update_secrets else keep_secrets(given, options))}
    result.pop("notification_configuration", None)
    if merged != options or (update_secrets and _has_secrets(options)):
        result["notification_configuration"] = merged
    if desired.get("messages") is not None:
        messages = actual.get("messages") or {}
        new = {event: _messages(desired["messages"].get(event), messages.get(event)) for event in _EVENTS}
        result.pop("messages")
        if new != {event: messages.get(event) for event in _EVENTS}:
            result["messages"] = new
    return result


def _messages(desired: t.Any, actual: t.Any) -> t.Any:
    """Return the messages of one event. AWX keeps those that a request omits."""
    if not desired:
        return actual
    if not isinstance(desired, dict) or not isinstance(actual, dict):
        return desired
    return {**actual, **{key: _messages(value, actual.get(key)) for key, value in desired.items()}}


def _has_secrets(value: t.Any) -> bool:
    if isinstance(value, dict):
        return any(_has_secrets(item) for item in value.values())
    return bool(value == ENCRYPTED)


def inventory(desired: Object) -> Object:
    """Name the kind of normal inventories: without it, the module writes an inventory on each run."""
    return {"kind": "", **desired}


def survey(desired: Object, actual: Object | None, update_secrets: bool) -> Object:
    """Return a survey as AWX stores it, with the stored defaults of passwords."""
    stored = {question.get("variable"): question for question in (actual or {}).get("spec", [])}
    result = copy.deepcopy(desired)
    for question in result.get("spec") or []:
        if question.get("type") in ("multiplechoice", "multiselect"):
            for option in ("choices", "default"):
                if isinstance(question.get(option), str):
                    question[option] = "\n".join(line for line in question[option].splitlines() if line.strip())
        before = stored.get(question.get("variable"), {})
        is_stored = question.get("type") == "password" and before.get("default") == ENCRYPTED
        if is_stored and question.get("default") and not update_secrets:
            question["default"] = ENCRYPTED
    return result


def has_password_default(desired: Object) -> bool:
    """Return whether the comparison of a survey needs the stored one."""
    return any(question.get("type") == "password" and question.get("default") for question in desired.get("spec") or [])


def extra_data(desired: Object, actual: Object | None, update_secrets: bool) -> Object:
    """Keep the answers to password questions in a schedule, and omit equal answers, which the module would write."""
    if actual is None or update_secrets or "extra_data" not in desired:
        return desired
    kept = keep_secrets(desired["extra_data"], actual.get("extra_data"))
    result = {**desired, "extra_data": kept}
    if kept == actual.get("extra_data"):
        result.pop("extra_data")
    return result


def nodes_differ(desired: t.Sequence[Object], actual: t.Sequence[Object], update_secrets: bool) -> bool:
    """Return whether the nodes of a workflow differ from the desired ones.

    ``actual``: nodes as the API returns them, with the names of the related objects in ``lists``.
    """
    identifiers = {node["id"]: node["identifier"] for node in actual}
    stored = {node["identifier"]: node for node in actual}
    if {str(node["identifier"]) for node in desired} != set(stored):
        return True
    return any(_node_differs(node, stored[str(node["identifier"])], identifiers, update_secrets) for node in desired)


def _node_differs(desired: Object, actual: Object, identifiers: t.Mapping[int, str], update_secrets: bool) -> bool:
    started, summary = desired["unified_job_template"], actual.get("summary_fields") or {}
    template = summary.get("unified_job_template") or {}
    if (started["name"], started["type"]) != (template.get("name"), _JOBS.get(str(template.get("unified_job_type")))):
        return True
    if started["type"] == "workflow_approval":
        wanted = (started.get("description") or "", started.get("timeout") or 0)
        if wanted != (template.get("description") or "", template.get("timeout") or 0):
            return True
    for name in _NODE_FIELDS:
        value, before = desired.get(name) or None, actual.get(name) or None
        if (value if update_secrets else keep_secrets(value, before)) != before:
            return True
        if update_secrets and _has_secrets(before):
            return True
    for name in ("inventory", "execution_environment"):
        value = desired.get(name)
        wanted_name = value.get("name") if isinstance(value, dict) else value
        if wanted_name != (summary.get(name) or {}).get("name"):
            return True
    related = desired.get("related") or {}
    for name in OUTCOMES:
        wanted_nodes = {item["identifier"] for item in related.get(name) or []}
        if wanted_nodes != {identifiers.get(key) for key in actual.get(name) or []}:
            return True
    return any(
        {item["name"] for item in related.get(name) or []} != set((actual.get("lists") or {}).get(name, ()))
        for name in ("credentials", "labels", "instance_groups")
    )
