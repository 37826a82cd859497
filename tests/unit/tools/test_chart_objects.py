# SPDX-License-Identifier: GPL-3.0-or-later
"""Diagrams of the objects of the Helm chart, from its rendered manifests."""

from __future__ import annotations

import re

import yaml

from tests import ROOT
from tools.documentation.diagrams import drawing
from tools.reference import chart_objects

PAGE = chart_objects.pages()["kubernetes-objects.md"]
DIAGRAMS = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)
RENDERED = {
    f"{each['kind']} {each['metadata']['name']}"
    for name in ("crd.yaml", "operator.yaml")
    for each in yaml.safe_load_all((ROOT / "charts/kustomize" / name).read_text())
}


def nodes(diagram: str, left: str) -> set[str]:
    """Return kinds and names of the boxes that begin with these brackets."""
    found = re.findall(rf'^ +n\d+{re.escape(left)}"(.+)<br/>(.+)"', diagram, re.MULTILINE)
    return {f"{kind.replace('<br/>', '')} {name}" for kind, name in found}


def test_boxes_are_objects_of_the_chart_and_rounded_boxes_are_not() -> None:
    programs, rights = DIAGRAMS
    boxes = nodes(programs, "[") | nodes(rights, "[")
    assert boxes <= RENDERED
    assert nodes(programs, "([") == {
        "ConfigMap ipu-partitions-tracker",
        "Lease ipu-operator-controller-manager",
        "Secret ipu-operator-admission",
    }
    drawn = {name.split(" ")[0] for name in boxes}
    listed = ("Namespace", "CustomResourceDefinition", "ClusterRoleBinding", "RoleBinding")
    assert {name.split(" ")[0] for name in RENDERED} - drawn == set(listed)


def test_every_object_is_listed() -> None:
    rows = re.findall(r"^\| (\w+) \| `(.+?)` \|", PAGE.partition("## List")[2], re.MULTILINE)
    assert {f"{kind} {name}" for kind, name in rows} == RENDERED


def test_the_site_can_draw_the_diagrams() -> None:
    for diagram in DIAGRAMS:
        svg = drawing(diagram)
        assert all(name in re.sub(r"<[^>]+>", "", svg) for name in ("ServiceAccount", "ipu-operator-"))
