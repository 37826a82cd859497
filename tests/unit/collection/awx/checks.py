# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the AWX content. Each returns its findings as sentences, so that a correct content has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT
from tests.unit.collection.awx.content import Content, Item, named
from tests.unit.collection.awx.playbooks import Playbook, analyse

Check = Callable[[Content], Iterator[str]]
OPTIONS: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "options.yml").read_text())
TYPES = {"str": str, "int": int, "bool": bool, "dict": dict, "list": list}

# Objects that every AWX contains, or that its setup creates.
AWX_CREDENTIAL_TYPES = {"Machine", "OpenStack", "Source Control", "Vault", "OpenShift or Kubernetes API Bearer Token"}
TEMPLATES = ("templates", "workflows")
# Options with names of other objects, and the kinds of these objects.
REFERENCES = {
    "organization": ("organizations",),
    "organizations": ("organizations",),
    "inventory": ("inventories",),
    "inventories": ("inventories",),
    "project": ("projects",),
    "projects": ("projects",),
    "source_project": ("projects",),
    "execution_environment": ("execution_environments",),
    "default_environment": ("execution_environments",),
    "credential": ("credentials",),
    "credentials": ("credentials",),
    "labels": ("labels",),
    "team": ("teams",),
    "teams": ("teams",),
    "job_templates": ("templates",),
    "workflows": ("workflows",),
    "unified_job_template": (*TEMPLATES, "projects", "inventory_sources"),
    "notification_templates_started": ("notifications",),
    "notification_templates_success": ("notifications",),
    "notification_templates_error": ("notifications",),
    "notification_templates_approvals": ("notifications",),
}
RELATED = ("success_nodes", "failure_nodes", "always_nodes")
NODE_KEYS = {
    *("identifier", "unified_job_template", "related", "extra_data", "limit", "job_type", "job_tags", "skip_tags"),
    *("diff_mode", "verbosity", "forks", "timeout", "job_slice_count", "all_parents_must_converge"),
}
NODE_KINDS = {
    "job_template": "templates",
    "workflow_job_template": "workflows",
    "project": "projects",
    "inventory_source": "inventory_sources",
}
APPROVAL = "workflow_approval"
# The drift check fails when something differs. That is a result of the workflow, not its failure.
SUCCESSFUL_AFTER_FAILURES = {"Drift"}


def label(kind: str, item: Item) -> str:
    return f"{kind} '{item.get('name', item.get('role'))}'"


def playbook_of(template: Item) -> Playbook | None:
    """Return the findings in the playbook of a job template; ``None`` if it does not exist."""
    path = ROOT / str(template.get("playbook"))
    return analyse(path) if path.is_file() and path.parent == ROOT / "playbooks" else None


def options_of_modules(content: Content) -> Iterator[str]:
    """Unknown, missing or malformed options of the modules of awx.awx."""
    for kind, items in content.kinds.items():
        if kind not in OPTIONS:
            yield f"controller_{kind} is unknown"
            continue
        options = OPTIONS[kind]["options"]
        names = [item.get("name") for item in items if kind != "roles"]
        yield from (f"{kind}: the name '{name}' is used twice" for name in {n for n in names if names.count(n) > 1})
        for item in items:
            yield from (f"{label(kind, item)}: unknown option '{key}'" for key in sorted(set(item) - set(options)))
            required = {key for key, option in options.items() if option.get("required")}
            yield from (f"{label(kind, item)}: option '{key}' is missing" for key in sorted(required - set(item)))
            for key in set(item) & set(options):
                yield from _option(f"{label(kind, item)}: {key}", item[key], options[key])


def _option(place: str, value: Any, option: dict[str, Any]) -> Iterator[str]:
    if not isinstance(value, TYPES[option["type"]]) or (option["type"] == "int" and isinstance(value, bool)):
        yield f"{place} is not of type {option['type']}"
    elif option.get("choices") and value not in option["choices"]:
        yield f"{place} is not one of {option['choices']}"
    elif option.get("elements") and not all(isinstance(each, TYPES[option["elements"]]) for each in value):
        yield f"{place} has an element that is not of type {option['elements']}"


def references(content: Content) -> Iterator[str]:
    """Names of objects that do not exist."""
    names = {kind: set(named(items)) for kind, items in content.kinds.items() if kind != "roles"}
    for kind, items in content.kinds.items():
        for item in items:
            for key in set(item) & set(REFERENCES):
                known = set().union(*(names.get(each, set()) for each in REFERENCES[key]))
                values = item[key] if isinstance(item[key], list) else [item[key]]
                missing = sorted(value for value in values if value not in known)
                yield from (f"{label(kind, item)}: {key} '{value}' does not exist" for value in missing)
    types = AWX_CREDENTIAL_TYPES | set(content.credential_types_by_name)
    for item in content.credentials:
        if item["credential_type"] not in types:
            yield f"{label('credentials', item)}: credential type '{item['credential_type']}' does not exist"


def playbooks(content: Content) -> Iterator[str]:
    """Playbooks that the collection does not have, and templates without the required settings."""
    for item in content.templates:
        if playbook_of(item) is None:
            yield f"{label('templates', item)}: playbook '{item.get('playbook')}' does not exist"
        for key in ("inventory", "project", "execution_environment", "timeout", "allow_simultaneous", "labels"):
            if not item.get(key) and item.get(key) is not False:
                yield f"{label('templates', item)}: {key} is not set"
        if item.get("survey_enabled", False) is not bool(item.get("survey_spec")):
            yield f"{label('templates', item)}: survey_enabled does not agree with survey_spec"


def slices(content: Content) -> Iterator[str]:
    """Job slices of playbooks that run a task once for all hosts: each slice would run it.

    Tasks that only print may run in each slice, for its hosts.
    """
    for item in content.templates:
        playbook = playbook_of(item)
        if item.get("job_slice_count", 1) > 1 and playbook and playbook.run_once:
            yield f"{label('templates', item)}: '{item['playbook']}' has tasks with run_once, which slices repeat"


def unattended_tenants(content: Content) -> Iterator[str]:
    """Prompts of templates that tenants may execute: a prompt for variables or hosts would be more than the survey."""
    tenants = content.settings["awx_team_tenants"]
    templates = {**named(content.templates), **named(content.workflows)}
    for role in content.roles:
        if tenants not in (role.get("team"), *role.get("teams", [])):
            continue
        if role["role"] not in ("execute", "read", "member"):
            yield f"roles: team '{tenants}' has the role {role['role']}"
        if role["role"] == "execute":
            for name in (*role.get("job_templates", []), *role.get("workflows", [])):
                prompts = [key for key, value in templates.get(name, {}).items() if key.startswith("ask_") and value]
                yield from (f"templates '{name}': tenants may execute it, and it sets {key}" for key in prompts)


def workflow_nodes(content: Content) -> Iterator[str]:
    """Nodes of workflows: unknown keys, missing templates, missing or unreachable nodes, cycles, approvals."""
    names = {kind: named(content.kinds.get(kind, [])) for kind in NODE_KINDS.values()}
    for item in content.workflows:
        place = label("workflows", item)
        nodes = {node.get("identifier"): node for node in item.get("workflow_nodes", [])}
        if not nodes or len(nodes) != len(item["workflow_nodes"]):
            yield f"{place}: nodes are missing, or an identifier is used twice"
        for identifier, node in nodes.items():
            yield from (f"{place}: node '{identifier}' has unknown key '{key}'" for key in set(node) - NODE_KEYS)
            template = node["unified_job_template"]
            if template["type"] == APPROVAL:
                if not template.get("timeout") or not template.get("name"):
                    yield f"{place}: approval '{identifier}' has no name or timeout"
            elif template["name"] not in names.get(NODE_KINDS.get(template["type"], ""), {}):
                yield f"{place}: node '{identifier}': {template['type']} '{template['name']}' does not exist"
            elif template.get("organization") != {"name": item["organization"]}:
                yield f"{place}: node '{identifier}' does not name its organization"
            for key, related in node.get("related", {}).items():
                if key not in RELATED:
                    yield f"{place}: node '{identifier}' has unknown key '{key}'"
                for each in related:
                    if each["identifier"] not in nodes:
                        yield f"{place}: node '{identifier}' refers to missing node '{each['identifier']}'"
        if cycle := _cycle(nodes):
            yield f"{place}: node '{cycle}' is part of a cycle"


def handled_failures(content: Content) -> Iterator[str]:
    """Last nodes after a failure whose job succeeds: AWX would count the workflow as successful."""
    templates = named(content.templates)
    for item in content.workflows:
        nodes = {node.get("identifier"): node for node in item.get("workflow_nodes", [])}
        handlers = {
            each["identifier"] for node in nodes.values() for each in node.get("related", {}).get("failure_nodes", ())
        }
        for identifier in sorted(handlers & nodes.keys()):
            template = templates.get(nodes[identifier]["unified_job_template"]["name"])
            if template is None or children(nodes[identifier]) or item["name"] in SUCCESSFUL_AFTER_FAILURES:
                continue
            plays = yaml.safe_load((ROOT / template["playbook"]).read_text())
            if not any("ansible.builtin.fail" in task for task in plays[-1].get("tasks", ())):
                yield f"{label('workflows', item)}: node '{identifier}' follows a failure, but its job succeeds"


def children(node: Item) -> list[str]:
    """Return the identifiers of the nodes that follow a node."""
    return [each["identifier"] for key in RELATED for each in node.get("related", {}).get(key, [])]


def _cycle(nodes: dict[Any, Item]) -> str | None:
    """Return a node from which a path leads back to it."""
    for start in nodes:
        seen: set[str] = set()
        paths = children(nodes[start])
        while paths:
            identifier = paths.pop()
            if identifier == start:
                return str(start)
            if identifier not in seen and identifier in nodes:
                seen.add(identifier)
                paths.extend(children(nodes[identifier]))
    return None
