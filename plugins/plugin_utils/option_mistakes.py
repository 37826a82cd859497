# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistyped and missing options of a task, and invalid values. No I/O.

Ansible suggests no name, and for suboptions names only the list.
"""

from __future__ import annotations

import typing as t

from ansible_collections.openipu.pod.plugins.module_utils.pod.mistakes import similar

Spec = t.Mapping[str, t.Mapping[str, t.Any]]


def mistakes(args: t.Mapping[str, t.Any], spec: Spec) -> list[str]:
    """Return unknown options, and all mistakes in the suboptions of lists and dictionaries, one sentence each.

    Missing options and invalid values of the module itself are left to Ansible.
    """
    # Ansible reports free text, which it passes in names with '_'.
    found = list(_unknown("", [name for name in args if not name.startswith("_")], args, spec))
    for name, option in spec.items():
        if option.get("options"):
            found += _nested(name, args.get(name), option["options"])
    return found


def _nested(path: str, value: t.Any, spec: Spec) -> t.Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _item(f"{path}[{index}]", item, spec)
    else:
        yield from _item(path, value, spec)


def _names(spec: Spec) -> dict[str, str]:
    """Return the option of each name and alias."""
    return {alias: name for name, option in spec.items() for alias in (name, *option.get("aliases", ()))}


def _unknown(label: str, keys: t.Iterable[t.Any], given: t.Container[t.Any], spec: Spec) -> t.Iterator[str]:
    names = _names(spec)
    for key in keys:
        if key not in names:
            remedy = _remedy(str(key), [name for name in names if name not in given], spec)
            yield f"{label}unknown option '{key}'. {remedy}"


def _remedy(name: str, candidates: t.Iterable[str], choices: t.Iterable[str]) -> str:
    """Return the remedy for an unknown name: the most similar candidate, or else all choices."""
    near = similar(name, candidates)
    return f"Did you mean '{near}'?" if near else f"Choose from {', '.join(choices)}."


def _invalid(label: str, given: t.Mapping[str, t.Any], spec: Spec) -> t.Iterator[str]:
    """Yield the texts that are no choice of their option. Ansible checks values of other types."""
    for name, option in spec.items():
        choices = option.get("choices") or ()
        if not all(isinstance(choice, str) for choice in choices):
            continue
        value = given.get(name)
        for text in value if isinstance(value, list) else [value]:
            # Ansible splits a single text of a list.
            single = isinstance(text, str) and (option.get("type") != "list" or isinstance(value, list))
            if choices and single and text not in choices:
                yield f"{label}: invalid value '{text}' of option '{name}'. {_remedy(text, choices, choices)}"


def _item(path: str, value: t.Any, spec: Spec) -> t.Iterator[str]:
    """Yield the mistakes in one item."""
    if not isinstance(value, dict):
        return  # Ansible reports the wrong type
    names = _names(spec)
    key = value.get("id") or value.get("name")
    label = f"{path} ({key})" if key else path
    unknown = list(_unknown(f"{label}: ", value, value, spec))
    yield from unknown
    given = {names[key]: value[key] for key in value if key in names}
    yield from _invalid(label, given, spec)
    missing = [name for name, option in spec.items() if option.get("required") and name not in given]
    if missing and not unknown:  # a mistyped option is not missing too
        yield f"{label}: missing option {', '.join(map(repr, missing))}. Add it."
    for name, option in spec.items():
        if option.get("options"):
            yield from _nested(f"{path}.{name}", value.get(name), option["options"])
