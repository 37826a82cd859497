# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Application of a description to AWX with the modules of the collection awx.awx."""

from __future__ import annotations

import typing as t
from urllib.parse import quote

from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError
from ansible_collections.openipu.pod.plugins.plugin_utils.awx import desired
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.client import Client
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.kinds import (
    KINDS,
    ROLE_TARGETS,
    ROLE_TEAMS,
    STARTED_BY_NODES,
    TEMPLATES,
    describe,
    names,
)
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.validate import Entry

Object = dict[str, t.Any]
RunModule = t.Callable[[str, Object], Object]
# Options of organizations that name objects inside of them, which exist only later.
_LATE = (
    *("default_environment", "galaxy_credentials", "notification_templates_started", "notification_templates_success"),
    *("notification_templates_error", "notification_templates_approvals"),
)
# Lists of objects that the deletion of an organization would remove or leave without an owner.
_OF_ORGANIZATIONS = {
    "teams": "controller_teams",
    "projects": "controller_projects",
    "inventories": "controller_inventories",
    "credentials": "controller_credentials",
    "notification_templates": "controller_notifications",
    "execution_environments": "controller_execution_environments",
    "job_templates": "controller_templates",
    "workflow_job_templates": "controller_workflows",
}


class Change(t.NamedTuple):
    """One object that changed, or would change in check mode."""

    action: str  # created, updated or deleted
    object: str


def _created(entry: Entry, result: Object) -> bool:
    """Return whether a module created the object: its result then has the name, and otherwise the ID."""
    return entry.kind.variable == "controller_roles" or "name" in result or "id" not in result


class Applier:
    """Brings one AWX to a description, object by object."""

    def __init__(self, client: Client, run_module: RunModule, check_mode: bool, update_secrets: bool) -> None:
        self._client, self._run_module = client, run_module
        self._check_mode, self._update_secrets = check_mode, update_secrets
        self._pending: set[tuple[str, str]] = set()  # objects that check mode would create
        self.changes: list[Change] = []
        self.kept: list[str] = []
        self.done = 0

    def present(self, entries: t.Sequence[Entry]) -> None:
        """Create and update objects. Raise TaskError at the first one that AWX rejects."""
        for entry in entries:
            values = entry.values
            if entry.kind.variable == "controller_organizations":
                values = {name: value for name, value in values.items() if name not in _LATE}
            self._apply(entry, values)
        for entry in entries:
            if (
                entry.kind.variable == "controller_organizations"
                and set(_LATE) & set(entry.values)
                and not entry.absent
            ):
                self._apply(entry, entry.values)

    def _apply(self, entry: Entry, values: Object) -> None:
        if entry.absent:
            self._delete(entry, [entry])
            return
        missing = self._missing(entry, values)
        if missing:
            action = "updated" if entry.kind.variable != "controller_roles" and self._find(entry) else "created"
            self._note(entry, action)
            return
        # The result of the module for workflows also has the names of new nodes.
        existed = entry.kind.variable == "controller_workflows" and self._find(entry) is not None
        result = self._run(entry, self._adjusted(entry, values))
        if result.get("changed"):
            self._note(entry, "updated" if existed or not _created(entry, result) else "created")
        self.done += 1

    def _note(self, entry: Entry, action: str) -> None:
        change = Change(action, describe(entry.kind, entry.values))
        if change.object not in {known.object for known in self.changes}:
            self.changes.append(change)
        if self._check_mode and action == "created":
            self._pending.add((entry.kind.variable, str(entry.values.get("name"))))

    def _missing(self, entry: Entry, values: Object) -> bool:
        """Return whether check mode would first have to create an object to which the entry refers."""
        if not self._pending:
            return False
        for option, variable in entry.kind.references.items():
            kinds = STARTED_BY_NODES.values() if variable == TEMPLATES else (variable,)
            if any((kind, name) in self._pending for name in names(values.get(option)) for kind in kinds):
                return True
        for node in values.get("workflow_nodes") or []:
            started = node["unified_job_template"]
            if (STARTED_BY_NODES.get(started["type"]), started["name"]) in self._pending:
                return True
        return False

    def _adjusted(self, entry: Entry, values: Object) -> Object:
        """Return the options for the module, without those that AWX has already."""
        variable, update = entry.kind.variable, self._update_secrets
        if variable == "controller_credential_types":
            return desired.credential_type(values)
        if variable == "controller_credentials":
            return desired.credential(values, self._find(entry), update)
        if variable == "controller_notifications":
            return desired.notification(values, self._find(entry), update)
        if variable == "controller_inventories":
            return desired.inventory(values)
        if variable == "controller_schedules":
            return desired.extra_data(values, self._find(entry) if values.get("extra_data") else None, update)
        if values.get("survey_spec"):
            actual = self._find(entry) if desired.has_password_default(values["survey_spec"]) else None
            stored = self._client.get(actual["related"]["survey_spec"]) if actual else None
            values = {**values, "survey_spec": desired.survey(values["survey_spec"], stored, update)}
        if variable == "controller_workflows" and "workflow_nodes" in values:
            return self._workflow(entry, values)
        return values

    def _workflow(self, entry: Entry, values: Object) -> Object:
        """Omit the nodes when they are equal. The module cannot remove nodes or links: it replaces all of them."""
        result = {name: value for name, value in values.items() if name != "destroy_current_nodes"}
        actual = self._find(entry)
        nodes = values["workflow_nodes"] or []
        if actual:
            stored = self._client.all("workflow_job_template_nodes", workflow_job_template=actual["id"])
            for node in stored:
                node["lists"] = {name: self._names(node["related"].get(name)) for name in self._listed(nodes)}
            if not desired.nodes_differ(nodes, stored, self._update_secrets):
                result.pop("workflow_nodes")
                return result
            if stored:
                result["destroy_current_nodes"] = True
        return result

    @staticmethod
    def _listed(nodes: t.Sequence[Object]) -> list[str]:
        lists = ("credentials", "labels", "instance_groups")
        return [name for name in lists if any((node.get("related") or {}).get(name) for node in nodes)]

    def _names(self, path: str | None) -> list[str]:
        return [str(item["name"]) for item in self._client.get(path)["results"]] if path else []

    def _find(self, entry: Entry) -> Object | None:
        """Return the object of an entry, or None."""
        filters = {"name": entry.values["name"]}
        for option in entry.kind.scope:
            if entry.values.get(option) not in (None, ""):
                filters[f"{option}__name"] = entry.values[option]
        found = self._client.all(entry.kind.endpoint, **filters)
        return found[0] if found else None

    def _run(self, entry: Entry, options: Object) -> Object:
        result = self._run_module(f"awx.awx.{entry.kind.module}", options)
        if result.get("failed"):
            raise TaskError(self._message(entry, options, result))
        return result

    def _message(self, entry: Entry, options: Object, result: Object) -> str:
        verb = "remove" if options.get("state") == "absent" else "apply"
        cause = str(result.get("msg") or result.get("module_stderr") or "unknown error").strip().rstrip(".")
        response = result.get("response")
        if isinstance(response, dict) and isinstance(response.get("json"), (dict, list)):
            cause = "{}: {}".format(cause, response["json"])
        if "401" in cause or "Failed to get token" in cause:
            remedy = "Check user name, password and token"
        elif "403" in cause:
            remedy = "Give the user of the role the right to change it"
        else:
            remedy = "Correct the entry"
        return (
            f"Cannot {verb} {describe(entry.kind, entry.values)} ({entry.place}): {cause}. {remedy}, and run the play "
            f"again. {self.done} objects before it are done; later ones are unchanged."
        )

    def absent(self, entries: t.Sequence[Entry]) -> None:
        """Delete the objects of the description in reverse order, and nothing else."""
        for entry in reversed(entries):
            self._delete(entry, entries)

    def _delete(self, entry: Entry, entries: t.Sequence[Entry]) -> None:
        variable = entry.kind.variable
        if variable == "controller_labels":
            return  # The API has no deletion of labels. AWX deletes a label when the last template releases it.
        if variable == "controller_roles":
            self._revoke(entry, entries)
            return
        actual = self._find(entry)
        if not actual:
            return
        if variable == "controller_organizations" and (others := self._others(actual, entries)):
            self.kept.append("{}: it still has {}".format(describe(entry.kind, entry.values), ", ".join(others)))
            return
        needed = {"name", *entry.kind.required, *entry.kind.scope}
        options = {name: value for name, value in entry.values.items() if name in needed}
        if variable == "controller_notifications":
            options.pop("notification_configuration", None)
        if self._run(entry, {**options, "state": "absent"}).get("changed"):
            self._note(entry, "deleted")
        self.done += 1

    def _others(self, organization: Object, entries: t.Sequence[Entry]) -> list[str]:
        """Return the objects of an organization that the description does not contain."""
        found = []
        for endpoint, variable in _OF_ORGANIZATIONS.items():
            described = {entry.values.get("name") for entry in entries if entry.kind.variable == variable}
            items = self._client.all(endpoint, organization=organization["id"])
            found += [
                "{} '{}'".format(KINDS[variable].title, item["name"]) for item in items if item["name"] not in described
            ]
        return found

    def _revoke(self, entry: Entry, entries: t.Sequence[Entry]) -> None:
        """Revoke a role. Roles of objects or teams that are deleted end with them."""
        deleted = {
            (other.kind.variable, str(other.values.get("name"))) for other in entries if not other.values.get("role")
        }
        options = {name: value for name, value in entry.values.items() if name != "state"}
        for option, variable in ({**ROLE_TARGETS, **dict.fromkeys(ROLE_TEAMS, "controller_teams")}).items():
            left = [name for name in names(options.pop(option, None)) if (variable, name) not in deleted]
            left = [name for name in left if self._exists(variable, name)]
            if left:
                options[option] = left if isinstance(entry.values[option], list) else left[0]
        has_members = any(options.get(option) for option in (*ROLE_TEAMS, "user", "users"))
        has_targets = any(options.get(option) for option in ROLE_TARGETS)
        if has_members and has_targets and self._run(entry, {**options, "state": "absent"}).get("changed"):
            self._note(entry, "deleted")
        self.done += 1

    def _exists(self, variable: str, name: str) -> bool:
        endpoint = KINDS[variable].endpoint if variable in KINDS else variable
        return bool(self._client.get("{}/?name={}".format(endpoint, quote(name, safe="")))["count"])
