# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at all files at once, and has ansible.builtin.copy and ansible.builtin.file write those that differ."""

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
from ansible_collections.openipu.pod.plugins.plugin_utils.builtin import run_builtin
from ansible_collections.openipu.pod.plugins.plugin_utils.host_files import Wanted

# Until ansible-core 2.19, text that looks like data was made data unless one said so; since then, it is odd to say it.
_AS_TEXT = {"convert_data": False} if tuple(map(int, __version__.split(".")[:2])) < (2, 19) else {}

_FOLDER, _FILE = "directory", "file"
_SOURCES = ("template", "content", "src")
_RIGHTS = {"owner": {"type": "str"}, "group": {"type": "str"}, "mode": {"type": "raw"}}


@dataclass(frozen=True)
class _Entry:
    """One of the files: what is wanted, and with which arguments Ansible makes it so."""

    wanted: Wanted
    args: dict[str, t.Any]
    secret: bool


class ActionModule(ActionBase):
    """See the module."""

    argument_spec: t.ClassVar[dict[str, t.Any]] = {
        "files": {
            "type": "list",
            "elements": "dict",
            "required": True,
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
        "variable_start_string": {"type": "str", "default": "{{"},
        "variable_end_string": {"type": "str", "default": "}}"},
    }
    constraints: t.ClassVar[dict[str, t.Any]] = {}
    TRANSFERS_FILES = False  # mostly there is nothing to transfer, and then no place for it is needed
    _supports_check_mode = True

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(self.argument_spec)
        entries = self._entries(args, task_vars)
        found = self._found(entries, task_vars, result)
        done: dict[str, list[str]] = {"created": [], "updated": [], "unchanged": []}
        result.update(changed=False, files=done, diff=[])
        for entry in entries:
            there = found.get(entry.wanted.path)
            if entry.wanted.is_there(there):
                done["unchanged"].append(entry.wanted.path)
                continue
            written = self._written(entry, task_vars)
            for name in ("warnings", "deprecations"):
                result.setdefault(name, []).extend(written.get(name) or [])
            if written.get("failed"):
                sentence = "Cannot write %s: %s." % (entry.wanted.path, _reason(written))
                return {**result, **_told(written), "failed": True, "msg": sentence}
            verb = "unchanged" if not written.get("changed") else "updated" if there else "created"
            done[verb].append(entry.wanted.path)
            result["changed"] = result["changed"] or bool(written.get("changed"))
            shown = written.get("diff") or []
            result["diff"] += shown if isinstance(shown, list) else [shown]
        return result

    def _found(self, entries: list[_Entry], task_vars: t.Any, result: dict[str, t.Any]) -> dict[str, t.Any]:
        """What stands at each path, as far as something does."""
        if not entries:
            return {}
        paths = [entry.wanted.path for entry in entries]
        answer = self._execute_module("openipu.pod.host_files_info", {"paths": paths}, task_vars=task_vars)
        if answer.get("failed") or "files" not in answer:
            raise AnsibleActionFail(answer.get("msg", "The files cannot be looked at."), result=answer)
        if "ansible_facts" in answer:
            result["ansible_facts"] = answer["ansible_facts"]  # the Python that was discovered, for tasks to come
        return {item["path"]: item for item in answer["files"]}

    def _entries(self, args: dict[str, t.Any], task_vars: t.Any) -> list[_Entry]:
        entries: dict[str, _Entry] = {}
        for file in args["files"]:
            try:
                entry = self._entry(file, args, task_vars)
            except AnsibleActionFail:
                raise
            except AnsibleError as error:
                raise AnsibleActionFail("Cannot make %s: %s" % (file["path"], error)) from error
            if entries.setdefault(entry.wanted.path, entry) is not entry:
                raise AnsibleActionFail("%s stands twice in files: leave one out." % entry.wanted.path)
        return list(entries.values())

    def _written(self, entry: _Entry, task_vars: t.Any) -> dict[str, t.Any]:
        if self._connection._shell.tmpdir is None:
            self._make_tmp_path()  # one for all that is to be written
        if entry.wanted.checksum is None:
            done = self._execute_module("ansible.legacy.file", entry.args, task_vars=task_vars)
            return t.cast("dict[str, t.Any]", done)
        return run_builtin(self, "ansible.builtin.copy", entry.args, task_vars, diff=not entry.secret)

    def _entry(self, file: dict[str, t.Any], args: dict[str, t.Any], task_vars: t.Any) -> _Entry:
        path, folder = str(PurePosixPath(file["path"])), file["state"] == _FOLDER
        given = [name for name in _SOURCES if file[name] is not None]
        if not path.startswith("/"):
            raise AnsibleActionFail("'%s' is no absolute path: say where the file is to be." % path)
        if folder and given:
            raise AnsibleActionFail("%s is a folder, which has no %s: leave that out." % (path, given[0]))
        if not folder and len(given) != 1:
            raise AnsibleActionFail(
                "%s has %s: give one of template, content and src."
                % (path, " and ".join(given) or "nothing to be made of")
            )
        rights = {
            "owner": file["owner"] or args["owner"],
            "group": file["group"] or args["group"],
            "mode": file["mode"] or args["directory_mode" if folder else "mode"],
        }
        if not isinstance(rights["mode"], str):
            raise AnsibleActionFail("%s has mode %s, which is a number: put it in quotes." % (path, rights["mode"]))
        if folder:
            made = {"path": path, "state": _FOLDER, **rights}
            return _Entry(Wanted(path, **rights), made, file["secret"])
        source, digest = self._source(file, given[0], args, task_vars)
        validate = {"validate": file["validate"]} if file["validate"] else {}
        made = {"dest": path, **source, **rights, **validate}
        return _Entry(Wanted(path, **rights, checksum=digest), made, file["secret"])

    def _source(
        self, file: dict[str, t.Any], kind: str, args: dict[str, t.Any], task_vars: t.Any
    ) -> tuple[dict[str, t.Any], str]:
        """Where the content comes from, as ansible.builtin.copy wants it, and its checksum."""
        if kind == "src":
            local = self._find_needle("files", file["src"])
            return {"src": local}, checksum(self._loader.get_real_file(local))
        text = file["content"] if kind == "content" else self._rendered(file, args, task_vars)
        if not isinstance(text, str):
            text = json.dumps(text)  # as ansible.builtin.copy does; a template may have made data of what was text
        return {"content": text}, checksum_s(text)

    def _rendered(self, file: dict[str, t.Any], args: dict[str, t.Any], task_vars: t.Any) -> str:
        lookup = lookup_loader.get("ansible.builtin.template", loader=self._loader, templar=self._templar)
        braces = {name: args[name] for name in ("variable_start_string", "variable_end_string")}
        given = {"template_vars": file["template_vars"], **braces, **_AS_TEXT}
        return str(lookup.run([file["template"]], variables=task_vars, **given)[0])


def _reason(result: dict[str, t.Any]) -> str:
    """Why a part failed; a validator says it last."""
    said = (result.get("stderr") or result.get("stdout") or "").split("\n")
    last = next((line.strip() for line in reversed(said) if line.strip()), "")
    return ": ".join(part.rstrip(". ") for part in (result.get("msg", "it failed"), last) if part)


def _told(result: dict[str, t.Any]) -> dict[str, t.Any]:
    """What the result of a part tells besides what it did to its file."""
    return {name: result[name] for name in ("rc", "stdout", "stderr") if name in result}
