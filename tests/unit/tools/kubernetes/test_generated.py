# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are generated from the chart and from the custom resource."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import yaml

from tests import ROOT
from tools.kubernetes import crd_reference, generated, helm

VALUES = """\
# A comment.
---
# -- Name of
# all objects.
name: ""
group:
  # -- Limits.
  limits:
    memory: 1Mi
    nested:
      cpu: 1
  # -- Port.
  port: 1
"""


def test_values_have_the_descriptions_of_their_comments() -> None:
    assert list(generated.described_values(VALUES)) == [
        ("name", "Name of all objects."),
        ("group.limits", "Limits."),
        ("group.port", "Port."),
    ]


@pytest.mark.parametrize("addition", ["other: 1\n", "group:\n  other: 1\n", "# A note.\nother: 1\n"])
def test_values_without_description_are_rejected(addition: str) -> None:
    with pytest.raises(ValueError, match=r"other in values\.yaml has no description"):
        list(generated.described_values(VALUES + addition))


def test_every_value_of_the_chart_is_described() -> None:
    text = (helm.CHART / "values.yaml").read_text()
    described = {name for name, _ in generated.described_values(text)}

    def leaves(prefix: str, value: Any) -> set[str]:
        if prefix in described or not isinstance(value, dict):
            return {prefix}
        return {leaf for name, each in value.items() for leaf in leaves(f"{prefix}.{name}".lstrip("."), each)}

    assert leaves("", yaml.safe_load(text)) == described
    table = generated.values_table()
    assert all(f"| `{name}` |" in table for name in described)


def test_the_chart_has_the_version_of_the_programs() -> None:
    chart = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_reference_describes_every_field_of_the_custom_resource() -> None:
    crd = yaml.safe_load(helm.CRD.read_text())
    page = crd_reference.page(crd)

    def paths(prefix: str, schema: dict[str, Any]) -> set[str]:
        found = set()
        for name, field in schema.get("properties", {}).items():
            path = f"{prefix}.{name}"
            found |= {path, *paths(f"{path}[]" if "items" in field else path, field.get("items", field))}
        return found

    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    expected = paths("spec", schema["spec"]) | paths("status", schema["status"])
    rows = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert rows == expected
    assert "| `spec.workers` | object | " in page
    assert "Required." in next(line for line in page.splitlines() if line.startswith("| `spec.workers` |"))


@pytest.mark.parametrize(
    ("schema", "row"),
    [
        ({"type": "integer", "minimum": 1, "default": 3}, "| `spec.a` | integer | (default `3`, at least `1`) |"),
        ({"type": "string", "enum": ["x", "y"]}, "| `spec.a` | string | One of `x`, `y`. |"),
        ({"type": "array", "items": {"type": "string"}}, "| `spec.a` | list of string |  |"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "| `spec.a` | map of string |  |"),
        ({"x-kubernetes-int-or-string": True, "description": "a|b"}, r"| `spec.a` | integer or string | a\|b |"),
    ],
)
def test_fields_have_type_and_limits(schema: dict[str, Any], row: str) -> None:
    spec = {"type": "object", "properties": {"a": schema}}
    version = {
        "name": "v1",
        "schema": {"openAPIV3Schema": {"description": "Text.", "properties": {"spec": spec}}},
    }
    names = {"kind": "Thing", "plural": "things", "singular": "thing"}
    page = crd_reference.page({"spec": {"group": "g", "scope": "Cluster", "names": names, "versions": [version]}})
    assert row in page.splitlines()
