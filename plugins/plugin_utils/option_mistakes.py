# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistyped and missing options of a task. Ansible suggests no name, and for suboptions names only the list. No I/O."""

from __future__ import annotations

import typing as t

from ansible_collections.openipu.pod.plugins.module_utils.pod.source import similar

Spec = t.Mapping[str, t.Mapping[str, t.Any]]


def mistakes(args: t.Mapping[str, t.Any], spec: Spec) -> list[str]:
    """Return unknown options, and unknown and missing suboptions of all lists and dictionaries, one sentence each.

    Missing options of the module itself are left to Ansible.
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
            near = similar(str(key), [name for name in names if name not in given])
            remedy = f"Did you mean '{near}'?" if near else f"Choose from {', '.join(spec)}."
            yield f"{label}unknown option '{key}'. {remedy}"


def _item(path: str, value: t.Any, spec: Spec) -> t.Iterator[str]:
    """Yield the mistakes in one item."""
    if not isinstance(value, dict):
        return  # Ansible reports the wrong type
    names = _names(spec)
    key = value.get("id") or value.get("name")
    label = f"{path} ({key})" if key else path
    unknown = list(_unknown(f"{label}: ", value, value, spec))
    yield from unknown
    given = {names[key] for key in value if key in names}
    missing = [name for name, option in spec.items() if option.get("required") and name not in given]
    if missing and not unknown:  # a mistyped option is not missing too
        yield f"{label}: missing option {', '.join(map(repr, missing))}. Add it."
    for name, option in spec.items():
        if option.get("options"):
            yield from _nested(f"{path}.{name}", value.get(name), option["options"])
