# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of the texts in pod.yml and machines.csv. No I/O.

The texts become variables, names of objects, lines of configuration files and arguments of commands. No form allows
the delimiters of a template, of a line, of a quoted string or of a shell command, or a leading '-'.
"""

from __future__ import annotations

import contextlib
import re
import typing as t
from dataclasses import dataclass

from ..vipu.object_rules import ID_PATTERN, ID_RULE

_OCTAL = re.compile(r"[-+]?0[0-7_]+")  # an octal number in YAML 1.1
_OCTAL_MESSAGE = (
    "invalid value '%s': YAML reads a number with a leading zero as octal, here %d. Write %d, or quote a text"
)
_UNDERSCORES = re.compile(r"[-+]?[1-9]\d*_[\d_]*")
_UNDERSCORES_MESSAGE = "invalid value '%s': a number has only digits. Write %d, or quote a text"
_PREFIXED = re.compile(r"[-+]?0([box])\w+")  # a number in another base, or a text such as 0o9
_BASES = {"b": "binary", "o": "octal", "x": "hexadecimal"}
_PREFIXED_MESSAGE = "invalid value '%s': this is the %s form of %d. Write %d, or quote a text"

_MAX_ITEMS = 5  # in a remedy
_NO_TEXTS = ("None", "True", "False")  # null and truth values of YAML, as Python writes them
_RANGE = re.compile(r"\[\w*:\w*\]")  # of hosts, in patterns of Ansible
_TYPOGRAPHIC = re.compile("[\u2018-\u201f]")  # quotation marks


@dataclass(frozen=True)
class Form:
    """Set of valid texts. ``rule`` completes the sentence "use …" of an error message.

    ``pattern`` matches a whole text. It is also part of the JSON Schema, so Python and ECMAScript must share its
    syntax. The exception is ``\\w``, which includes the letters of all alphabets.
    """

    rule: str
    pattern: str

    def accepts(self, text: str) -> bool:
        """Return whether a text has this form."""
        return re.fullmatch(self.pattern, text) is not None

    def remedy(self, text: str) -> str:
        """Return what to write instead of a text of another form."""
        if _RANGE.search(text):
            return "ranges are not expanded: list each name"
        return "remove the typographic quotation marks" if _TYPOGRAPHIC.search(text) else "use %s" % self.rule


NAME = Form(ID_RULE, ID_PATTERN)
WORD = Form(
    "1 to 128 letters, digits, '.', '_', ':', '/', '+' or '-', and start with a letter, a digit or ':'",
    r"[A-Za-z0-9:][A-Za-z0-9._:/+-]{0,127}",
)
HOST = Form("%s. Write several hosts as a list" % WORD.rule, WORD.pattern)
TEXT = Form(
    "1 to 255 letters, digits, spaces, '.', ',', '_', ':', '/', '+', '@', '(', ')' or '-', and do not start with '-'",
    r"(?!-)[\w .,:/+@()-]{1,255}",
)
TEAM_NAME = Form(
    "1 to 31 letters, digits, '_' or '-', and start with a letter or a digit",
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}",
)
NAMESPACE = Form(
    "1 to 63 lower-case letters, digits or '-', as 'kubectl get namespaces' prints it",
    r"(?=.{1,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?",
)
NODE_NAME = Form(
    "1 to 253 lower-case letters, digits, '-' or '.', as 'kubectl get nodes' prints it",
    r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*",
)
_LABEL_PART = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
NODE_LABEL = Form(
    "a label of Kubernetes, such as 'ipunode=pod1'",
    r"([a-z0-9][a-z0-9.-]{0,251}[a-z0-9]/)?%s=%s" % (_LABEL_PART, _LABEL_PART),
)


def number_error(text: str, number: bool, *, quoted: bool) -> str | None:
    """Return the message for a number that YAML reads in another base or with underscores, None for all others.

    ``number`` is whether YAML 1.1 reads the text as a number. YAML 1.2 also does so when it starts with '0o'.
    """
    digits = text.replace("_", "")
    if number and _OCTAL.fullmatch(text):
        return _OCTAL_MESSAGE % (text, int(digits, 8), int(digits))
    if number and _UNDERSCORES.fullmatch(text):
        return _UNDERSCORES_MESSAGE % (text, int(digits))
    prefixed = _PREFIXED.fullmatch(text)
    if prefixed and (number or (prefixed[1] == "o" and not quoted)):
        with contextlib.suppress(ValueError):  # such as the text 0o9
            decimal = int(digits, 0)
            return _PREFIXED_MESSAGE % (text, _BASES[prefixed[1]], decimal, decimal)
    return None


def mapping_remedy(name: str, option: t.Mapping[str, t.Any], value: t.Any) -> str:
    """Return what to write instead of a single value, for a key whose value is a mapping: its keys and an example."""
    if "schema" not in option:
        return "write '%s: {NAME: VALUE}'" % name
    keys = ", ".join(option["schema"].declared)
    return "its keys are %s, as in '%s: %s'" % (keys, name, _example(option, value))


def list_remedy(name: str, option: t.Mapping[str, t.Any], value: t.Any) -> str:
    """Return what to write instead of a single value or a mapping, for a key whose value is a list."""
    if "schema" in option:
        schema, names = option["schema"], list(value) if isinstance(value, dict) else [value]
        first, example = schema.first_key, names[0] if names else None
        required = [key for key, each in schema.declared.items() if each.get("required") and key != first]
        pairs = ["%s: %s" % (first, _example(schema.declared[first], example)), *("%s: …" % key for key in required)]
        return "its items are mappings, as in '%s: [{%s}]'" % (name, ", ".join(pairs))
    items = list(value) if isinstance(value, dict) else str(value).replace(",", " ").split()
    fits = 0 < len(items) <= _MAX_ITEMS and all(_is_item(option, item) for item in items)
    return "write [%s]" % ", ".join(items if fits else ["VALUE", "VALUE"])


def _is_item(option: t.Mapping[str, t.Any], text: str) -> bool:
    """Return whether a text is probably meant as an item of a list: not a truth value, null or the key of a mapping."""
    if text in _NO_TEXTS or text.endswith(":"):
        return False
    return option.get("form", TEXT).accepts(text) and text in option.get("choices", (text,))


def _example(option: t.Mapping[str, t.Any], value: t.Any) -> str:
    """Return an example of the value of a key: the user's text if it has the form, else an ellipsis."""
    if "schema" in option:
        first, nested = next(iter(option["schema"].declared.items()))
        return "{%s: %s}" % (first, _example(nested, value))
    kind = option.get("type", "str")
    fits = kind == "str" and isinstance(value, str) and option.get("form", TEXT).accepts(value)
    example = value if fits else "…"
    return "[%s]" % example if kind == "list" and not option.get("single") else str(example)
