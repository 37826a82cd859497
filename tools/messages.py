# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages in the code, as templates: every value in a message is written as ``…``.

A message is a text that starts with ``Cannot``, ``is not YAML:`` or ``is not a mapping:``. In Python, these texts are
messages too:

* in ``raise`` statements, and in calls that create or collect errors, with the constants that both name, and the
  variables that are their arguments
* assigned to a variable such as ``message`` or ``reason``
* returned by functions whose docstring says so: "Return the message …"

In scripts and templates, messages are texts in double quotation marks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import yaml

_FORMAT = re.compile(r"%(?:\(\w+\))?[-#0-9.]*[sdrgfxX]|(?<!\{)\{[^{}]*\}(?!\})")
_QUOTED = re.compile(r"(['\"])…\1")
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_STATEMENT = re.compile(r"\{%.*?%\}", re.DOTALL)
_VALUE = re.compile(r"'\s*~.*?~\s*'", re.DOTALL)  # between two texts of an expression
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_IN_SCRIPT = re.compile(r'"(Cannot [^"]*)"')
_IN_EXPRESSION = re.compile(r"'(Cannot [^'|]*)'")
_STARTS = ("Cannot ", "is not YAML: ", "is not a mapping: ")
_PREFIX = re.compile(r"Cannot (?:[^:.]*:?|[\w…]+(?: …)+: ….?(?: ….?)?)")  # of a message whose rest is a value
_NAMES = {"cause", "message", "problem", "problems", "reason"}
_ERRORS = re.compile(r"\w*(?:Error|Violation)|error|fail")  # functions with a message as an argument
_NO_MESSAGES = {"ConsequenceError", "_REMEDY", "remedy"}  # an error that is never reported, and parts of messages
_RETURNS = re.compile(r"Return (?:the|a) (?:message|mistake)\b")
_BEGIN = re.compile(r"[\w…'\"-]")
_WORD = re.compile(r"[^\W\d_][\w-]*")
_WORDS, _WORDS_WITH_VALUES = 4, 2  # of the shortest messages; the second one has values and a colon


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the template of each text in Python code."""
    for node in ast.walk(tree):
        text = _text(node)
        if text is not None:
            yield normal(text)


def messages(path: Path) -> dict[str, int]:
    """Return the messages in a file of Python or YAML, or in a script or template, each with its first line."""
    text = path.read_text()
    read = {".py": _python, ".yml": _yaml}.get(path.suffix, _script)
    found: dict[str, int] = {}
    for message, line in read(text):
        found.setdefault(normal(message), line)
    return {text: line for text, line in found.items() if _is_complete(text)}


def _is_complete(text: str) -> bool:
    """Return whether a text is a sentence or clause, and neither a word, an identifier nor the start of a message."""
    words = _WORDS_WITH_VALUES if "…" in text and ": " in text else _WORDS
    has_words = " " in text and len(_WORD.findall(text)) >= words
    return has_words and bool(_BEGIN.match(text)) and not _PREFIX.fullmatch(text)


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


def _python(code: str) -> Iterator[tuple[str, int]]:
    """Yield the messages of a module, without its docstrings and without the parts of formatted texts."""
    tree = ast.parse(code)
    nodes = list(ast.walk(tree))
    inside = {id(each): each for node in nodes for root in _roots(node) for each in ast.walk(root)}
    names = {each.id for each in inside.values() if isinstance(each, ast.Name)} - _NO_MESSAGES
    constants = [node for node in tree.body if _targets(node) & names]
    functions = [list(ast.walk(node)) for node in nodes if isinstance(node, ast.FunctionDef)]
    variables = [node for function in functions for node in _variables(function, inside.keys())]
    is_message = inside.keys() | {id(node.value) for node in (*constants, *variables) if isinstance(node, ast.Assign)}
    left_out = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    left_out |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        text = _text(node) if id(node) not in left_out else None
        if text and (text.startswith(_STARTS) or id(node) in is_message):
            yield text, getattr(node, "lineno", 0)


def _roots(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a statement or call of which all texts are messages."""
    if _targets(node) & _NAMES or (isinstance(node, ast.Raise) and not _is_hidden(node.exc)):
        yield node
    elif isinstance(node, ast.Call) and _collects(node.func):
        yield from node.args
    elif isinstance(node, ast.FunctionDef) and _RETURNS.match(ast.get_docstring(node) or ""):
        yield from (each for each in ast.walk(node) if isinstance(each, ast.Return))


def _variables(function: Sequence[ast.AST], inside: Collection[int]) -> Iterator[ast.AST]:
    """Yield the assignments to variables of a function that are arguments of its errors."""
    calls = [node for node in function if isinstance(node, ast.Call) and id(node) in inside]
    given = {name for call in calls for name in _arguments(call)} - _NO_MESSAGES
    yield from (node for node in function if _targets(node) & given)


def _arguments(call: ast.Call) -> Iterator[str]:
    """Yield the variables that are arguments of a call as a whole, or that are formatted with ``%``."""
    for each in call.args:
        template = each.left if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod) else each
        if isinstance(template, ast.Name):
            yield template.id


def _targets(node: ast.AST) -> set[str]:
    return {each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)}


def _is_hidden(error: ast.expr | None) -> bool:
    return isinstance(error, ast.Call) and isinstance(error.func, ast.Name) and error.func.id in _NO_MESSAGES


def _collects(function: ast.expr) -> bool:
    """Return whether a function creates an error, or appends a message to a list. Logs are no messages."""
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        return owner in _NAMES or (owner != "_log" and bool(_ERRORS.fullmatch(function.attr)))
    return isinstance(function, ast.Name) and bool(_ERRORS.fullmatch(function.id)) and function.id not in _NO_MESSAGES


def _yaml(text: str) -> Iterator[tuple[str, int]]:
    for document in yaml.compose_all(text, yaml.SafeLoader):
        yield from _texts_of(document)


def _texts_of(node: yaml.Node | None) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        for _, value in node.value:
            yield from _texts_of(value)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _texts_of(each)
    elif isinstance(node, yaml.ScalarNode):
        line = node.start_mark.line + 1
        if node.value.startswith(_STARTS):
            yield rendered(node.value), line
        else:
            yield from ((each, line) for each in _IN_EXPRESSION.findall(_VALUE.sub("…", node.value)))


def _script(text: str) -> Iterator[tuple[str, int]]:
    for found in _IN_SCRIPT.finditer(text):
        yield _VARIABLE.sub("…", rendered(found[1])), text.count("\n", 0, found.start()) + 1
