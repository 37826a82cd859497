# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages in the code, as templates: every value in a message is written as ``…``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("plugins", "src/openipu", "roles", "playbooks")
_FORMAT = re.compile(r"%(?:\(\w+\))?[-#0-9.]*[sdrgfx]|\{[^{}]*\}")


def templates() -> set[str]:
    """Return the template of each text in the Python code, and the lines of the YAML files of roles and playbooks."""
    found: set[str] = set()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name != "contract.py":
                found.update(_texts(ast.parse(path.read_text())))
        for path in sorted((ROOT / folder).rglob("*.yml")):
            found.add(_normal(re.sub(r"\{\{.*?\}\}", "…", path.read_text(), flags=re.DOTALL)))
    return found


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield _normal(_FORMAT.sub("…", node.value))
        elif isinstance(node, ast.JoinedStr):
            parts = [
                _FORMAT.sub("…", str(part.value)) if isinstance(part, ast.Constant) else "…" for part in node.values
            ]
            yield _normal("".join(parts))


def _normal(text: str) -> str:
    """Return a text with single blanks and marks for quoted values: 'a', "a" and plain values look the same."""
    return " ".join(re.sub(r"['\"]?…['\"]?", "…", text).split())


def is_known(message: str, known: set[str]) -> bool:
    """Return whether a message with ``…`` for values is part of a text in the code."""
    return any(_normal(message) in text for text in known)
