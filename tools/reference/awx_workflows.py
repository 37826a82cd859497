# SPDX-License-Identifier: GPL-3.0-or-later
"""Page of the workflows of the AWX content, with a diagram of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from .markdown import page, paragraph

_ROOT = Path(__file__).resolve().parents[2]
_SOURCE = _ROOT / "extensions/awx/workflows.yml"
# Kinds of edges in AWX, with their texts.
_EDGES = {"success_nodes": "", "failure_nodes": "on failure", "always_nodes": "always"}
_INTRODUCTION = """
This page is for administrators of an AWX. It shows the workflows of the [AWX content](../../extensions/awx/README.md).
[AWX](../how-to/awx.md) explains when to start them.

Boxes are jobs, and rounded boxes are approvals by a person. An arrow without a text leads to the next step after a
success.
"""


class _Loader(yaml.SafeLoader):
    """Reader of the content, in which AWX itself renders some texts."""


_Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))  # type: ignore[arg-type]


def pages() -> dict[str, str]:
    """Return the page of the workflows, by its path in docs/reference."""
    content = yaml.load(_SOURCE.read_text(), _Loader)  # noqa: S506  a subclass of the safe loader
    parts = [part for workflow in content["controller_workflows"] for part in _workflow(workflow)]
    return {"awx-workflows.md": page("AWX workflows", _INTRODUCTION, parts)}


def _workflow(workflow: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {workflow['name']}"
    yield paragraph(f"{workflow['description']}.")
    yield "\n".join(["```mermaid", "flowchart TD", *_lines(workflow["workflow_nodes"]), "```"])


def _lines(nodes: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a diagram: nodes, then edges."""
    for node in nodes:
        template = node["unified_job_template"]
        left, right = "([", "])"
        if template["type"] != "workflow_approval":
            left, right = "[", "]"
        yield f'    {node["identifier"]}{left}"{template["name"]}"{right}'
    for node in nodes:
        for kind, text in _EDGES.items():
            for following in node.get("related", {}).get(kind, ()):
                label = f"|{text}|" if text else ""
                yield f"    {node['identifier']} -->{label} {following['identifier']}"
