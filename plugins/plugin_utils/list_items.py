# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in suboptions, with the index of the list item. Ansible reports only the name of the list. No I/O."""

from __future__ import annotations

import difflib
import typing as t

Spec = t.Mapping[str, t.Mapping[str, t.Any]]


def mistakes(args: t.Mapping[str, t.Any], spec: Spec) -> list[str]:
    """Return unknown and missing suboptions of all nested lists and dictionaries, one sentence each."""
    found: list[str] = []
    for name, option in spec.items():
        if option.get("options"):
            found += _nested(name, args.get(name), option["options"])
    return found


def _nested(path: str, value: t.Any, spec: Spec) -> t.Iterator[str]:
    names = {alias: name for name, option in spec.items() for alias in (name, *option.get("aliases", ()))}
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _item(f"{path}[{index}]", item, spec, names)
    else:
        yield from _item(path, value, spec, names)


def _item(path: str, value: t.Any, spec: Spec, names: t.Mapping[str, str]) -> t.Iterator[str]:
    """Yield the mistakes in one item. ``names`` has the option of each name and alias."""
    if not isinstance(value, dict):
        return  # Ansible reports the wrong type
    key = value.get("id") or value.get("name")
    label = f"{path} ({key})" if key else path
    unknown = [key for key in value if key not in names]
    for key in unknown:
        similar = difflib.get_close_matches(str(key), set(names).difference(value), 1)
        remedy = f"Did you mean '{similar[0]}'?" if similar else f"Choose from {', '.join(spec)}."
        yield f"{label}: unknown option '{key}'. {remedy}"
    given = {names[key] for key in value if key in names}
    missing = [name for name, option in spec.items() if option.get("required") and name not in given]
    if missing and not unknown:  # a mistyped option is not missing too
        yield f"{label}: missing option {', '.join(map(repr, missing))}. Add it."
    for name, option in spec.items():
        if option.get("options"):
            yield from _nested(f"{path}.{name}", value.get(name), option["options"])
