# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action of awx_content: read and validate the description, then run the modules of awx.awx."""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.client import SECRET_OPTIONS, Client, resolve
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.validate import Entry, mistakes
from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError
from ansible_collections.openipu.pod.plugins.plugin_utils.action import check_options, plain_args
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.apply import Applier
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.description import read

# Inputs of credentials that are not secret. All others are hidden in messages.
_PLAIN_INPUTS = (
    *("username", "user", "host", "url", "port", "project", "project_domain_name", "domain", "region", "verify_ssl"),
    *("become_method", "become_username", "vault_id", "ca", "certificate"),
)
_SECRET_OPTIONS_OF_NOTIFICATIONS = ("password", "token", "account_token", "grafana_key", "headers")
_SHORTEST_SECRET = 5  # shorter values, such as "true", also occur in other text


class ActionModule(ActionBase):
    """Action plugin of the module awx_content."""

    argument_spec: t.ClassVar[dict[str, t.Any]] = {
        "folder": {"type": "path", "required": True},
        "objects": {"type": "dict", "default": {}},
        "connection": {"type": "dict", "default": {}},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "existing": {"type": "dict", "default": {}},
        "update_secrets": {"type": "bool", "default": False},
    }
    constraints: t.ClassVar[dict[str, t.Any]] = {}
    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        check_options(self._task, self.argument_spec)
        _checked, args = self.validate_argument_spec(self.argument_spec)
        hidden: set[str] = set()
        try:
            entries = read(Path(args["folder"]), args["objects"] or {}, self._loader, self._templar, variables)
            connection = self._connection_options(args["connection"] or {})
            hidden = _secrets(entries, connection)
            self._validate(entries, args)
            applier = self._applier(connection, bool(args["update_secrets"]), variables)
            if args["state"] == "absent":
                applier.absent(entries)
            else:
                applier.present(entries)
        except TaskError as error:
            message = t.cast("str", remove_values(str(error), hidden))
            raise AnsibleActionFail(message, result={"error_code": TaskError.error_code}) from None
        lines = ["%s %s" % change for change in applier.changes]
        result.update(changed=bool(lines), changes=lines, kept=applier.kept)
        if self._task.diff and lines:
            result["diff"] = {"prepared": "".join("%s\n" % line for line in lines)}
        return t.cast("dict[str, t.Any]", remove_values(result, hidden))

    def _connection_options(self, given: dict[str, t.Any]) -> dict[str, t.Any]:
        environment: dict[str, t.Any] = {}
        self._compute_environment_string(environment)
        return resolve(plain_args(given), {**os.environ, **{name: str(value) for name, value in environment.items()}})

    def _validate(self, entries: list[Entry], args: dict[str, t.Any]) -> None:
        found = mistakes(entries, plain_args(args["existing"] or {}))
        if found:
            raise TaskError(
                "Cannot apply the description of AWX: it has %d mistakes. Nothing was changed. Correct them:\n%s"
                % (len(found), "\n".join("- %s" % line for line in found))
            )

    def _applier(self, connection: dict[str, t.Any], update_secrets: bool, variables: t.Any) -> Applier:
        def run_module(name: str, options: dict[str, t.Any]) -> dict[str, t.Any]:
            arguments = {**options, **connection}
            return t.cast("dict[str, t.Any]", self._execute_module(name, module_args=arguments, task_vars=variables))

        prefix = os.environ.get("CONTROLLER_OPTIONAL_API_URLPATTERN_PREFIX", "/api/")
        return Applier(Client(connection, prefix), run_module, bool(self._task.check_mode), update_secrets)


def _secrets(entries: list[Entry], connection: dict[str, t.Any]) -> set[str]:
    """Return all values that messages may not show."""
    found: set[str] = set()
    for name in SECRET_OPTIONS:
        found |= _texts(connection.get(name))
    for entry in entries:
        values = entry.values
        for name, value in (values.get("inputs") or {}).items():
            if entry.kind.variable == "controller_credentials" and name not in _PLAIN_INPUTS:
                found |= _texts(value)
        for name, value in (values.get("notification_configuration") or {}).items():
            if name in _SECRET_OPTIONS_OF_NOTIFICATIONS:
                found |= _texts(value)
        # Answers to password questions are among the variables of schedules and nodes.
        found |= _texts(values.get("extra_data"))
        for node in values.get("workflow_nodes") or []:
            if isinstance(node, dict):
                found |= _texts(node.get("extra_data"))
        for question in (values.get("survey_spec") or {}).get("spec") or []:
            if isinstance(question, dict) and question.get("type") == "password":
                found |= _texts(question.get("default"))
    return {value for value in found if len(value) >= _SHORTEST_SECRET}


def _texts(value: t.Any) -> set[str]:
    if isinstance(value, dict):
        return {text for item in value.values() for text in _texts(item)}
    if isinstance(value, list):
        return {text for item in value for text in _texts(item)}
    if not isinstance(value, str):
        return set()
    # Messages may contain the text as JSON.
    return {value, json.dumps(value)[1:-1]}
