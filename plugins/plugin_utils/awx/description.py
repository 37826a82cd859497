# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Description of an AWX: the files of a folder and the lists of a task, merged and rendered."""

from __future__ import annotations

import inspect
import typing as t
from pathlib import Path

from ansible.errors import AnsibleError
from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError
from ansible_collections.openipu.pod.plugins.plugin_utils.action import plain_args
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.kinds import KINDS, identity
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.validate import Entry

_SUFFIXES = (".yml", ".yaml", ".json")


def read(folder: Path, objects: t.Mapping[str, t.Any], loader: t.Any, templar: t.Any, variables: t.Any) -> list[Entry]:
    """Return the entries of all files below a folder, and those of ``objects``. Raise TaskError.

    Entries of ``objects`` replace those of the files with the same name. Variables of the play override the settings in
    the files.
    """
    files = _files(folder)
    contents = {file: _load(loader, file) for file in files}
    settings = {name: value for content in contents.values() for name, value in content.items() if name not in KINDS}
    renderer = templar.copy_with_new_env(available_variables={**settings, **variables})
    entries = []
    for file, content in contents.items():
        place = str(file.relative_to(folder))
        for variable in KINDS:
            if variable in content:
                entries += _entries(variable, _render(renderer, content[variable], place), place)
    unknown = sorted(set(objects) - set(KINDS))
    if unknown:
        raise TaskError(
            "Cannot read the description of AWX: objects has the unknown key '{}'. Use {}.".format(
                unknown[0], ", ".join(KINDS)
            )
        )
    given = [entry for name in KINDS for entry in _entries(name, plain_args({"v": objects.get(name) or []})["v"], name)]
    replaced = {(entry.kind.variable, *identity(entry.kind, entry.values)) for entry in given}
    kept = [entry for entry in entries if (entry.kind.variable, *identity(entry.kind, entry.values)) not in replaced]
    if not kept and not given:
        raise TaskError(
            f"Cannot read the description of AWX: '{folder}' has no file with objects, and no objects are given. "
            "Set awx_content_folder."
        )
    order = list(KINDS)
    return sorted([*kept, *given], key=lambda entry: order.index(entry.kind.variable))


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise TaskError(
            f"Cannot read the description of AWX: the folder '{folder}' does not exist. Set awx_content_folder."
        )
    return sorted(file for file in folder.rglob("*") if file.suffix in _SUFFIXES and file.is_file())


def _load(loader: t.Any, file: Path) -> dict[str, t.Any]:
    # Since ansible-core 2.19, only trusted text is rendered.
    trusted = {"trusted_as_template": True} if "trusted_as_template" in _parameters(loader.load_from_file) else {}
    try:
        content = loader.load_from_file(str(file), **trusted)
    except AnsibleError as error:
        raise TaskError("Cannot read file '{}': {}. Correct it.".format(file, str(error).rstrip("."))) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise TaskError(f"Cannot read file '{file}': it has no variables at its top level. Correct it.")
    return content


def _parameters(function: t.Any) -> t.Mapping[str, t.Any]:
    return inspect.signature(function).parameters


def _render(templar: t.Any, value: t.Any, place: str) -> t.Any:
    try:
        return plain_args({"v": templar.template(value)})["v"]
    except AnsibleError as error:
        cause = str(error).rstrip(".")
        raise TaskError(f"Cannot render '{place}': {cause}. Set the variable, or correct the file.") from None


def _entries(variable: str, value: t.Any, place: str) -> list[Entry]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise TaskError(f"Cannot read '{place}': {variable} is not a list of dictionaries. Correct it.")
    return [
        Entry(
            KINDS[variable],
            item,
            f"{place}[{index + 1}]" if place == variable else f"{place}, entry {index + 1}",
        )
        for index, item in enumerate(value)
    ]
