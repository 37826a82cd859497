# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action plugin of host_files: reads all files in one request, and writes those that differ with builtin modules."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass
from pathlib import PurePosixPath

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import lookup_loader
from ansible.release import __version__
from ansible.utils.hashing import checksum, checksum_s
from ansible_collections.openipu.pod.plugins.plugin_utils.action import check_options
from ansible_collections.openipu.pod.plugins.plugin_utils.builtin import run_builtin
from ansible_collections.openipu.pod.plugins.plugin_utils.host_files import (
    DesiredFile,
    create_marks,
    mark,
    remove_marks,
)

# Before ansible-core 2.19, text that looks like data became data by default. Since then, the option is deprecated.
_AS_TEXT = {"convert_data": False} if tuple(map(int, __version__.split(".")[:2])) < (2, 19) else {}

_FOLDER, _FILE = "directory", "file"
_SOURCES = ("template", "content", "src")
_RIGHTS = {"owner": {"type": "str"}, "group": {"type": "str"}, "mode": {"type": "raw"}}


@dataclass(frozen=True)
class _Entry:
    """One entry of files: the desired file, and the arguments of the builtin module that writes it."""

    desired: DesiredFile
    args: dict[str, t.Any]
    secret: bool


class ActionModule(ActionBase):
    """Action plugin of the module host_files."""

    argument_spec: t.ClassVar[dict[str, t.Any]] = {
        "files": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "path": {"type": "str", "required": True},
                "state": {"type": "str", "choices": [_FILE, _FOLDER], "default": _FILE},
                "template": {"type": "str"},
                "template_vars": {"type": "dict", "default": {}},
                "content": {"type": "raw"},
                "src": {"type": "str"},
                "validate": {"type": "str"},
                "secret": {"type": "bool", "default": False},
                **_RIGHTS,
            },
        },
        "owner": {"type": "str", "default": "root"},
        "group": {"type": "str", "default": "root"},
        "mode": {"type": "raw", "default": "0644"},
        "directory_mode": {"type": "raw", "default": "0755"},
        "keep_marks": {"type": "bool", "default": False},
        "mark": {"type": "list", "elements": "str", "default": []},
        "unmark": {"type": "list", "elements": "str", "default": []},
        "variable_start_string": {"type": "str", "default": "{{"},
        "variable_end_string": {"type": "str", "default": "}}"},
    }
    constraints: t.ClassVar[dict[str, t.Any]] = {}
    TRANSFERS_FILES = False  # most runs transfer nothing and need no temporary folder
    _supports_check_mode = True

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        check_options(self._task, self.argument_spec)
        _checked, args = self.validate_argument_spec(self.argument_spec, required_one_of=[("files", "mark", "unmark")])
        entries = self._entries(args, task_vars)
        found = self._fetch(entries, task_vars, result)
        marked = {entry.desired.path for entry in entries if mark(entry.desired.path) in found}
        different = {
            entry.desired.path for entry in entries if not entry.desired.matches(found.get(entry.desired.path))
        }
        self._mark({*args["mark"], *(different - marked)})
        done: dict[str, list[str]] = {"created": [], "updated": [], "unchanged": []}
        result.update(changed=False, files=done, diff=[])
        for entry in entries:
            path, actual = entry.desired.path, found.get(entry.desired.path)
            written = self._write(entry, task_vars) if path in different else {}
            for name in ("warnings", "deprecations"):
                result.setdefault(name, []).extend(written.get(name) or [])
            if written.get("failed"):
                touched = {*done["created"], *done["updated"]}
                if self._fetch([entry], task_vars, result).get(path) != actual:
                    touched.add(path)
                self._unmark(different - marked - touched)
                message = "Cannot write '%s': %s." % (path, _reason(written))
                return {**result, **_output(written), "failed": True, "msg": message}
            changed = written.get("changed") or path in marked
            done["unchanged" if not changed else "updated" if actual else "created"].append(path)
            result["changed"] = result["changed"] or bool(changed)
            shown = written.get("diff") or []
            result["diff"] += shown if isinstance(shown, list) else [shown]
        self._unmark({*args["unmark"], *(() if args["keep_marks"] else different | marked)})
        return result

    def _mark(self, paths: set[str]) -> None:
        """Mark files that are about to be written. Raises AnsibleActionFail."""
        if not paths or self._task.check_mode:
            return
        done = self._low_level_execute_command(create_marks(paths))
        if done["rc"] != 0:
            reason = (done["stderr"] or done["stdout"]).strip().rstrip(".")
            raise AnsibleActionFail(
                "Cannot mark the files to write: %s. Nothing was written. Make the folder writable." % reason
            )

    def _unmark(self, paths: set[str]) -> None:
        """Remove the marks of files. A mark that remains only makes the next task report a change."""
        if paths and not self._task.check_mode:
            self._low_level_execute_command(remove_marks(paths))

    def _fetch(self, entries: list[_Entry], task_vars: t.Any, result: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return the attributes of the existing files, by path."""
        if not entries:
            return {}
        paths = [path for entry in entries for path in (entry.desired.path, mark(entry.desired.path))]
        response = self._execute_module("openipu.pod.host_files_info", {"paths": paths}, task_vars=task_vars)
        if response.get("failed") or "files" not in response:
            raise AnsibleActionFail(
                response.get("msg", "Cannot read the attributes of the files. Repeat with -vvv."), result=response
            )
        if "ansible_facts" in response:
            result["ansible_facts"] = response["ansible_facts"]  # the discovered Python, for later tasks
        return {item["path"]: item for item in response["files"]}

    def _entries(self, args: dict[str, t.Any], task_vars: t.Any) -> list[_Entry]:
        entries: dict[str, _Entry] = {}
        for file in args["files"]:
            try:
                entry = self._entry(file, args, task_vars)
            except AnsibleActionFail:
                raise
            except AnsibleError as error:
                raise AnsibleActionFail("Cannot prepare '%s': %s" % (file["path"], error)) from error
            if entries.setdefault(entry.desired.path, entry) is not entry:
                raise AnsibleActionFail("Cannot write '%s' twice. Remove one entry from files." % entry.desired.path)
        return list(entries.values())

    def _write(self, entry: _Entry, task_vars: t.Any) -> dict[str, t.Any]:
        if self._connection._shell.tmpdir is None:
            self._make_tmp_path()  # shared by all files
        if entry.desired.checksum is None:
            done = self._execute_module("ansible.legacy.file", entry.args, task_vars=task_vars)
            return t.cast("dict[str, t.Any]", done)
        return run_builtin(self, "ansible.builtin.copy", entry.args, task_vars, diff=not entry.secret)

    def _entry(self, file: dict[str, t.Any], args: dict[str, t.Any], task_vars: t.Any) -> _Entry:
        path, folder = str(PurePosixPath(file["path"])), file["state"] == _FOLDER
        given = [name for name in _SOURCES if file[name] is not None]
        if not path.startswith("/"):
            raise AnsibleActionFail("Cannot write '%s': the path is not absolute. Start it with '/'." % path)
        if folder and given:
            raise AnsibleActionFail(
                "Cannot create folder '%s': %s is set, but a folder has no content. Remove %s."
                % (path, given[0], given[0])
            )
        if not folder and len(given) != 1:
            raise AnsibleActionFail(
                "Cannot write '%s': %s. Set exactly one of template, content and src."
                % (path, "%s are set" % " and ".join(given) if given else "it has no source")
            )
        rights = {
            "owner": file["owner"] or args["owner"],
            "group": file["group"] or args["group"],
            "mode": file["mode"] or args["directory_mode" if folder else "mode"],
        }
        if not isinstance(rights["mode"], str):
            raise AnsibleActionFail(
                "Cannot write '%s': mode %s is a number. Put it in quotes." % (path, rights["mode"])
            )
        if folder:
            module_args = {"path": path, "state": _FOLDER, **rights}
            return _Entry(DesiredFile(path, **rights), module_args, file["secret"])
        source, digest = self._source(file, given[0], args, task_vars)
        validate = {"validate": file["validate"]} if file["validate"] else {}
        module_args = {"dest": path, **source, **rights, **validate}
        return _Entry(DesiredFile(path, **rights, checksum=digest), module_args, file["secret"])

    def _source(
        self, file: dict[str, t.Any], kind: str, args: dict[str, t.Any], task_vars: t.Any
    ) -> tuple[dict[str, t.Any], str]:
        """Return the source as arguments of ansible.builtin.copy, and the checksum of the content."""
        if kind == "src":
            local = self._find_needle("files", file["src"])
            return {"src": local}, checksum(self._loader.get_real_file(local))
        text = file["content"] if kind == "content" else self._render(file, args, task_vars)
        if not isinstance(text, str):
            text = json.dumps(text)  # like ansible.builtin.copy; templating may have turned text into data
        return {"content": text}, checksum_s(text)

    def _render(self, file: dict[str, t.Any], args: dict[str, t.Any], task_vars: t.Any) -> str:
        lookup = lookup_loader.get("ansible.builtin.template", loader=self._loader, templar=self._templar)
        braces = {name: args[name] for name in ("variable_start_string", "variable_end_string")}
        given = {"template_vars": file["template_vars"], **braces, **_AS_TEXT}
        return str(lookup.run([file["template"]], variables=task_vars, **given)[0])


def _reason(result: dict[str, t.Any]) -> str:
    """Return why a builtin module failed, with the last line of the output, which holds a validator's error."""
    lines = (result.get("stderr") or result.get("stdout") or "").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return ": ".join(part.rstrip(". ") for part in (result.get("msg", "unknown error"), last) if part)


def _output(result: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return exit code and output from the result of a builtin module."""
    return {name: result[name] for name in ("rc", "stdout", "stderr") if name in result}
