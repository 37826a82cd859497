# SPDX-License-Identifier: GPL-3.0-or-later
"""The AWX content of ``extensions/awx``, rendered with its default settings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from jinja2 import StrictUndefined
from jinja2.nativetypes import NativeEnvironment

from tests import ROOT

FOLDER = ROOT / "extensions/awx"
PREFIX = "controller_"
Item = dict[str, Any]


class Unsafe(str):
    """A string with the tag ``!unsafe``: Ansible passes its braces on to AWX."""


class _Loader(yaml.SafeLoader):
    """Reject keys that are set twice, also by a merge (``<<``), because Ansible warns about them."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        keys = [self.construct_object(key) for key, _value in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"'{key}' is set twice{node.start_mark}")
        return super().construct_mapping(node, deep)


_Loader.add_constructor("!unsafe", lambda loader, node: Unsafe(loader.construct_scalar(node)))  # type: ignore[no-untyped-call]


@dataclass
class Content:
    """Objects by kind, such as ``templates``, and the settings ``awx_…``."""

    kinds: dict[str, list[Item]]
    settings: dict[str, Any]

    def __getattr__(self, kind: str) -> list[Item]:
        if kind.startswith("_"):
            raise AttributeError(kind)
        return self.kinds.get(kind, [])

    @cached_property
    def credential_types_by_name(self) -> dict[str, Item]:
        return named(self.kinds["credential_types"])

    def credential_type(self, credential: str) -> Item | None:
        """Return the credential type of a credential; ``None`` for types that AWX contains, and without credential."""
        return self.credential_types_by_name.get(named(self.credentials).get(credential, {}).get("credential_type", ""))


def named(items: list[Item]) -> dict[str, Item]:
    """Return objects by name."""
    return {item["name"]: item for item in items}


def load(folder: Path = FOLDER, **settings: Any) -> Content:
    """Return the content of a folder, rendered with its defaults or with other settings."""
    kinds: dict[str, list[Item]] = {}
    values: dict[str, Any] = {}
    for file in sorted(folder.rglob("*.yml")):
        for name, value in yaml.load(file.read_text(), _Loader).items():
            if name.startswith(PREFIX):
                kinds.setdefault(name.removeprefix(PREFIX), []).extend(value)
            else:
                values[name] = value
    values.update(settings)
    for name, value in values.items():  # a setting may refer to those before it
        values[name] = _render(value, values)
    return Content({kind: _render(items, values) for kind, items in kinds.items()}, values)


def _render(value: Any, settings: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _render(each, settings) for key, each in value.items()}
    if isinstance(value, list):
        return [_render(each, settings) for each in value]
    if isinstance(value, str) and not isinstance(value, Unsafe) and "{{" in value:
        return NativeEnvironment(undefined=StrictUndefined).from_string(value).render(settings)
    return value
