# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action of pod_report: render the report on the control node and copy it to the target with ansible.builtin.copy."""

from __future__ import annotations

import json
import shutil
import tempfile
import typing as t
from pathlib import Path

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from ansible_collections.openipu.pod.plugins.module_utils.report import actions, pdus, runs, vipu_info
from ansible_collections.openipu.pod.plugins.module_utils.report.page import render_pods
from ansible_collections.openipu.pod.plugins.module_utils.report.pods import Source
from ansible_collections.openipu.pod.plugins.module_utils.report.view import last_runs
from ansible_collections.openipu.pod.plugins.plugin_utils.action import check_options, check_pods, plain_args
from ansible_collections.openipu.pod.plugins.plugin_utils.builtin import run_builtin

_COPIED = ("dest", "mode", "owner", "group", "backup")
_CONTENT: dict[str, t.Any] = {
    "pod": {"type": "path"},
    "info": {"type": "dict"},
    "test_run": {"type": "raw"},
    "pdus": {"type": "dict"},
}
_CONTENT_OF_POD: dict[str, t.Any] = {**_CONTENT, "name": {"type": "str"}, "failure": {"type": "str"}}


class ActionModule(ActionBase):
    """Action plugin of the module pod_report."""

    argument_spec: t.ClassVar[dict[str, t.Any]] = {
        "dest": {"type": "path", "required": True},
        **_CONTENT,
        "pods": {
            "type": "list",
            "elements": "dict",
            "options": _CONTENT_OF_POD,
            "required_one_of": [("pod", "info", "test_run")],
        },
        "mode": {"type": "raw", "default": "0644"},
        "owner": {"type": "str"},
        "group": {"type": "str"},
        "backup": {"type": "bool", "default": False},
    }
    constraints: t.ClassVar[dict[str, t.Any]] = {
        "required_one_of": [("pod", "info", "test_run", "pods")],
        "mutually_exclusive": [("pods", name) for name in _CONTENT],
    }
    TRANSFERS_FILES = True
    _supports_check_mode = True

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        if "pods" not in self._task.args:
            check_pods(self._task, task_vars or {})
        check_options(self._task, self.argument_spec)
        _checked, args = self.validate_argument_spec(self.argument_spec, **self.constraints)
        args = plain_args(args)
        sources = self._sources(args)
        page = render_pods(sources)
        result["actions"] = [text for source in sources for text in _actions(source, several=len(sources) > 1)]
        folder = Path(tempfile.mkdtemp(dir=constants.DEFAULT_LOCAL_TMP))
        try:
            file = folder / "report.html"
            file.write_text(page, encoding="utf-8")
            copied = {name: args[name] for name in _COPIED if args[name] is not None}
            result.update(run_builtin(self, "ansible.builtin.copy", {"src": str(file), **copied}, task_vars))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return result

    def _sources(self, args: dict[str, t.Any]) -> list[Source]:
        """Return the validated content of all PODs."""
        if args["pods"] is None:
            return [self._source(args)]
        if not args["pods"]:
            raise AnsibleActionFail("Cannot write the report: the option pods is empty. Add a POD.")
        return [self._source(item, f" of pods {number}") for number, item in enumerate(args["pods"], 1)]

    def _source(self, content: dict[str, t.Any], place: str = "") -> Source:
        """Return the validated content of one POD. ``place`` is where the options are, for messages."""
        return Source(
            self._pod(content["pod"]),
            self._info(content["info"], place),
            self._test_runs(content["test_run"], place),
            self._pdus(content["pdus"], place),
            content.get("name"),
            content.get("failure"),
        )

    def _test_runs(self, value: t.Any, place: str) -> list[dict[str, t.Any]]:
        """Return the runs, given as one value or a list, or as the path of a JSON file."""
        if not value:
            return []
        where = "test_run%s" % place
        if isinstance(value, str):
            path = Path(self._loader.path_dwim(value))
            where = str(path)
            try:
                value = json.loads(path.read_text(encoding="utf-8"))
            except OSError as error:
                raise AnsibleActionFail("Cannot read file '%s': %s." % (path, (error.strerror or "").lower())) from None
            except (ValueError, RecursionError):
                raise AnsibleActionFail(
                    "Cannot read file '%s': it is not JSON. Use the stored result of a task." % path
                ) from None
        if isinstance(value, dict):  # the result of a task has several runs, or one
            value = next((value[key] for key in ("runs", "run") if isinstance(value.get(key), list | dict)), value)
        try:
            return [runs.checked(each) for each in (value if isinstance(value, list) else [value])]
        except ValueError as error:
            raise AnsibleActionFail(
                "Cannot read the run of cluster tests in %s: %s. Use the value runs of vipu_cluster_test_info, or a file "
                "with the output of 'vipu-admin --output json test cluster'." % (where, error)
            ) from None

    def _info(self, value: t.Any, place: str) -> dict[str, t.Any] | None:
        """Return the state of the controller, None when it is not given."""
        try:
            return t.cast("dict[str, t.Any]", vipu_info.checked(value)) if value else None
        except ValueError as error:
            raise AnsibleActionFail(
                "Cannot read the option info%s: %s. Use the result of vipu_info." % (place, error)
            ) from None

    def _pdus(self, value: t.Any, place: str) -> dict[str, t.Any]:
        """Return the readings of the PDUs by name."""
        try:
            return t.cast("dict[str, t.Any]", pdus.checked(value or {}))
        except ValueError as error:
            raise AnsibleActionFail(
                "Cannot read the option pdus%s: %s. Use a mapping from names of PDUs to results of pdu_info."
                % (place, error)
            ) from None

    def _pod(self, path: str | None) -> model.Pod | None:
        if not path:
            return None
        try:
            return load(self._loader.path_dwim(path))
        except PodError as error:
            raise AnsibleActionFail(str(error)) from None


def _actions(source: Source, *, several: bool) -> list[str]:
    """Return the actions of a POD, with its name among several PODs."""
    name = source.name or (source.pod.name if source.pod else "")
    prefix = f"{name}: " if several and name else ""
    return [prefix + action.text for action in actions.of_runs(last_runs(source.run))]
