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
from ansible_collections.openipu.pod.plugins.module_utils.report import actions, runs, vipu_info
from ansible_collections.openipu.pod.plugins.plugin_utils.rack_report import render
from ansible_collections.openipu.pod.plugins.plugin_utils.action import check_pods, plain_args
from ansible_collections.openipu.pod.plugins.plugin_utils.builtin import run_builtin

_COPIED = ("dest", "mode", "owner", "group", "backup")


class ActionModule(ActionBase):
    """Action plugin of the module pod_report."""

    argument_spec: t.ClassVar[dict[str, t.Any]] = {
        "dest": {"type": "path", "required": True},
        "pod": {"type": "path"},
        "info": {"type": "dict"},
        "test_run": {"type": "raw"},
        "mode": {"type": "raw", "default": "0644"},
        "owner": {"type": "str"},
        "group": {"type": "str"},
        "backup": {"type": "bool", "default": False},
    }
    constraints: t.ClassVar[dict[str, t.Any]] = {"required_one_of": [("pod", "info", "test_run")]}
    TRANSFERS_FILES = True
    _supports_check_mode = True

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        check_pods(self._task, task_vars or {})
        _checked, args = self.validate_argument_spec(self.argument_spec, **self.constraints)
        args = plain_args(args)
        run = self._test_run(args["test_run"])
        page = render(self._pod(args["pod"]), self._info(args["info"]), run)
        result["actions"] = [action.text for action in actions.actions(run)]
        folder = Path(tempfile.mkdtemp(dir=constants.DEFAULT_LOCAL_TMP))
        try:
            file = folder / "report.html"
            file.write_text(page, encoding="utf-8")
            copied = {name: args[name] for name in _COPIED if args[name] is not None}
            result.update(run_builtin(self, "ansible.builtin.copy", {"src": str(file), **copied}, task_vars))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return result

    def _test_run(self, value: t.Any) -> dict[str, t.Any] | None:
        """Return the run, given as a value or as the path of a JSON file; None without a run."""
        if not value:
            return None
        where = "test_run"
        if isinstance(value, str):
            path = Path(self._loader.path_dwim(value))
            where = str(path)
            try:
                value = json.loads(path.read_text(encoding="utf-8"))
            except OSError as error:
                raise AnsibleActionFail("Cannot read file '%s': %s." % (path, (error.strerror or "").lower())) from None
            except (ValueError, RecursionError):
                raise AnsibleActionFail("Cannot read file '%s': it is not JSON." % path) from None
        if isinstance(value, dict) and isinstance(value.get("run"), dict):
            value = value["run"]  # the result of a task
        try:
            return t.cast("dict[str, t.Any]", runs.checked(value))
        except ValueError as error:
            raise AnsibleActionFail(
                "Cannot read the run of cluster tests in %s: %s. Use the value run of vipu_cluster_test_info, or a file "
                "with the output of 'vipu-admin --output json test cluster'." % (where, error)
            ) from None

    def _info(self, value: t.Any) -> dict[str, t.Any] | None:
        """Return the state of the controller, None when it is not given."""
        try:
            return t.cast("dict[str, t.Any]", vipu_info.checked(value)) if value else None
        except ValueError as error:
            raise AnsibleActionFail("Cannot read the option info: %s. Use the result of vipu_info." % error) from None

    def _pod(self, path: str | None) -> model.Pod | None:
        if not path:
            return None
        try:
            return load(self._loader.path_dwim(path))
        except PodError as error:
            raise AnsibleActionFail(str(error)) from None
