# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages in the code, as templates: every value in a message is written as ``…``.

A message is a text that starts with ``Cannot``. In Python, texts in ``raise`` statements are messages too, and texts
that are assigned to a variable such as ``message`` or ``reason``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

_FORMAT = re.compile(r"%(?:\(\w+\))?[-#0-9.]*[sdrgfx]|\{[^{}]*\}")
_QUOTED = re.compile(r"['\"]?…['\"]?")
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_STATEMENT = re.compile(r"\{%.*?%\}", re.DOTALL)
_VALUE = re.compile(r"'\s*~.*?~\s*'", re.DOTALL)  # between two texts of an expression
_IN_EXPRESSION = re.compile(r"'(Cannot [^']*)'")
_START = "Cannot "
_NAMES = {"cause", "message", "problem", "reason"}
_BEGIN = re.compile(r"[\w…'\"-]")
_WORD = re.compile(r"[^\W\d_][\w-]*")
_WORDS = 4  # of the shortest message


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the template of each text in Python code."""
    for node in ast.walk(tree):
        text = _text(node)
        if text is not None:
            yield normal(text)


def messages(path: Path) -> list[str]:
    """Return the templates of the messages in a file of Python or YAML, each once."""
    found = _python(ast.parse(path.read_text())) if path.suffix == ".py" else _yaml(path.read_text())
    once = dict.fromkeys(map(normal, found))
    return [text for text in once if _BEGIN.match(text) and len(_WORD.findall(text)) >= _WORDS]


def normal(text: str) -> str:
    """Return a text with single blanks and marks for quoted values: 'a', "a" and plain values look the same."""
    return " ".join(_QUOTED.sub("…", text).split())


def rendered(text: str) -> str:
    """Return a text of Ansible with ``…`` in place of expressions."""
    return _EXPRESSION.sub("…", _STATEMENT.sub("", text)).replace("%s", "…")


def _text(node: ast.AST) -> str | None:
    """Return the template of an expression, or None if it is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _FORMAT.sub("…", node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "…" for part in node.values)
    return None


def _python(tree: ast.Module) -> Iterator[str]:
    """Yield the messages of a module, without its docstrings and without the parts of formatted texts."""
    nodes = list(ast.walk(tree))
    raised = {id(each) for node in nodes if _is_message(node) for each in ast.walk(node)}
    left_out = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    left_out |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        text = _text(node) if id(node) not in left_out else None
        if text and (text.startswith(_START) or id(node) in raised):
            yield text


def _is_message(node: ast.AST) -> bool:
    """Return whether the texts in a statement are messages."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id in _NAMES for target in node.targets)
    return isinstance(node, ast.Raise)


def _yaml(text: str) -> Iterator[str]:
    for document in yaml.load_all(text, _Loader):
        yield from _texts_of(document)


def _texts_of(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _texts_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts_of(each)
    elif isinstance(value, str):
        if value.startswith(_START):
            yield rendered(value)
        else:
            yield from _IN_EXPRESSION.findall(_VALUE.sub("…", value))


class _Loader(yaml.SafeLoader):
    """Loader that ignores the tags of Ansible."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: loader.construct_scalar(node))
