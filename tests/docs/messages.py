# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts in the code, as templates: every value in a text is written as ``…``."""

from __future__ import annotations

import ast
import re

from tests import ROOT
from tools.messages import normal, rendered, texts

FOLDERS = ("plugins", "src/openipu", "roles", "playbooks", "tools/ee")


def templates() -> set[str]:
    """Return the template of each text in the Python code, and the lines of YAML files and of scripts of roles."""
    found: set[str] = set()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name != "contract.py":
                found.update(texts(ast.parse(path.read_text())))
        for path in sorted((ROOT / folder).rglob("*.yml")):
            found.add(normal(rendered(path.read_text())))
    for path in sorted((ROOT / "roles").glob("*/files/*")):
        if path.is_file() and not path.suffix:
            found.add(normal(re.sub(r"\$\w+", "…", path.read_text())))
    return found


def is_known(message: str, known: set[str]) -> bool:
    """Return whether a message with ``…`` for values is part of a text in the code."""
    return any(normal(message) in text for text in known)
