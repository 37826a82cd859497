# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Schemas of the mappings in pod.yml and of the rows of machines.csv. No I/O.

``spec`` declares the schemas. They validate the files, and the JSON Schema for editors is generated from them.
"""

from __future__ import annotations

import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .forms import TEXT, Form
from .mistakes import Mistakes
from .source import Block, Items, unknown

Option = dict[str, t.Any]
Spec = t.Mapping[str, t.Mapping[str, t.Any]]
_MAX_SHOWN = 40  # characters of an invalid value in a message
_OWN_KEYS = ("form", "range", "schema", "single")  # of an option, which ArgumentSpecValidator does not know
_IDENTIFIERS = ("id", "name")
_COLLECTIONS = {"list": (Items, "a list"), "dict": (Block, "a mapping")}


def _shown(text: str) -> str:
    """Return the start of an invalid text in quotes, with escaped control characters."""
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…")


class MappingSchema:
    """Schema of a mapping as an argument spec, with four more keys of an option.

    ``form`` is the form of a text, or of the values of a mapping without schema; by default it is TEXT. ``range`` has
    the lowest and the highest valid number; the loader checks it. ``schema`` is the schema of a nested mapping, or of
    the mappings in a list. ``single`` allows a single text in the place of a list of texts; the result is a list.
    """

    def __init__(self, label: str, spec: Spec, **rules: t.Any) -> None:
        """``label`` names the mapping in messages.

        ``rules`` are those of ArgumentSpecValidator (mutually_exclusive and so on).
        """
        self.label = label
        self.declared = spec
        self.rules = rules
        self._forms: dict[str, Form] = {
            name: option.get("form", TEXT)
            for name, option in spec.items()
            if option.get("elements", option.get("type", "str")) == "str"
        }
        self.spec: Spec = {
            name: {key: value for key, value in option.items() if key not in _OWN_KEYS} for name, option in spec.items()
        }
        self._validator = ArgumentSpecValidator(self.spec, **rules)

    def check(self, block: Block, subject: str | None = None) -> Block:
        """Return the mapping with converted values and defaults.

        ``subject`` names the mapping in messages, by default its label with its name. Raises PodError with all
        mistakes, each with its line.
        """
        mistakes = Mistakes()
        subject = subject or self._subject(block)
        unknown_keys = [name for name in block if name not in self.spec]
        if unknown_keys:
            messages = {name: unknown("key", name, self.spec) for name in unknown_keys}
            messages[unknown_keys[-1]] += self._missing(block, "".join(messages.values()))
            for name, message in messages.items():
                mistakes.add(block.error("%s: %s" % (subject, message), name))
        known = {name: value for name, value in block.items() if name in self.spec}
        for name in known:
            with mistakes.collect():
                self._check_type(block, name, subject)
        mistakes.check()
        result = self._validator.validate({name: self._as_list(name, value) for name, value in block.items()})
        for key, message in self._invalid(block, result.error_messages):
            mistakes.add(block.error("%s: %s" % (subject, message), key))
        mistakes.check()
        for name, form in self._forms.items():
            self._check_texts(block, name, result.validated_parameters.get(name), form, subject, mistakes)
        mistakes.check()
        checked = Block(block.file, block.line)
        checked.lines = block.lines
        # Nested mappings and lists keep their lines.
        for name, value in result.validated_parameters.items():
            checked[name] = block[name] if isinstance(block.get(name), (Block, Items)) else value
        return checked

    def _as_list(self, name: str, value: t.Any) -> t.Any:
        """Return a value, as a list when a single one stands for a list. The validator would split it at commas."""
        single = self.declared[name].get("single") and not isinstance(value, Items)
        return value if value is None or not single else [value]

    def _check_texts(self, block: Block, name: str, value: t.Any, form: Form, subject: str, mistakes: Mistakes) -> None:
        """Record texts of another form, also in lists. Omitted values and optional empty ones are valid."""
        required = self.spec[name].get("required")
        lines = block[name].lines if isinstance(block.get(name), Items) else [block.lines.get(name)]
        for text, line in zip(value if isinstance(value, list) else [value], lines, strict=False):
            if text is None or (text == "" and not required) or form.accepts(str(text)):
                continue
            what = self.label if name in _IDENTIFIERS else subject
            message = "%s: invalid %s %s: use %s" % (what, name, _shown(text), form.rule)
            mistakes.add(block.error(message, name, line))

    def _check_type(self, block: Block, name: str, subject: str) -> None:
        """Reject values of another type that the validator would convert."""
        kind = self.spec[name].get("type", "str")
        form, expected = _COLLECTIONS.get(kind, (None, "a single value"))
        value = block[name]
        if self.declared[name].get("single"):
            if isinstance(value, Block):
                raise block.error("%s: '%s' must be a single value or a list" % (subject, name), name)
            if not isinstance(value, Items):
                kind, form = "str", None
        if kind == "raw":
            return
        if value is None:
            if self.spec[name].get("required"):
                raise block.error("%s: '%s' has no value: set one" % (subject, name), name)
            return
        if isinstance(value, bool) and kind in ("str", "int"):
            remedy = "quote it" if kind == "str" else "write a number"
            raise block.error("%s: '%s' is a truth value in YAML: %s" % (subject, name, remedy), name)
        if not isinstance(value, form) if form else isinstance(value, (Block, Items)):
            raise block.error("%s: '%s' must be %s" % (subject, name, expected), name)
        if self.spec[name].get("elements") == "dict":
            for item, line in zip(value, value.lines, strict=True):
                if not isinstance(item, Block):
                    raise block.error("%s: '%s' must be a list of mappings" % (subject, name), name, line)

    def child(self, block: Block, key: str, subject: str | None = None) -> Block:
        """Return the checked mapping of a key. An omitted one has the defaults. Raises PodError."""
        schema: MappingSchema = self.declared[key]["schema"]
        given = block.get(key)
        return schema.check(Block(block.file, block.line) if given is None else given, subject)

    def children(self, block: Block, key: str, mistakes: Mistakes) -> list[Block]:
        """Return the checked mappings of a list, without those with mistakes, which are recorded."""
        schema: MappingSchema = self.declared[key]["schema"]
        checked = []
        for item in block.get(key) or ():
            with mistakes.collect():
                checked.append(schema.check(item))
        return checked

    def _missing(self, block: Block, message: str) -> str:
        """Return the missing required keys that the message does not suggest already."""
        required = [name for name, option in self.spec.items() if option.get("required") and name not in block]
        names = [name for name in required if "'%s'" % name not in message]
        return " (missing: %s)" % ", ".join(names) if names else ""

    def _subject(self, block: Block) -> str:
        name = next((block[key] for key in _IDENTIFIERS if key in block), None)
        return self.label if name is None or isinstance(name, bool) else "%s '%s'" % (self.label, name)

    def _invalid(self, block: Block, messages: t.Sequence[str]) -> t.Iterator[tuple[str | None, str]]:
        """Yield each message with the key of the invalid value, None when it is about the mapping as a whole."""
        if not messages:
            return
        left = list(messages)
        for name, value in block.items():
            alone = ArgumentSpecValidator({name: dict(self.spec[name], required=False)})
            for message in alone.validate({name: value}).error_messages:
                yield name, message
                left = [each for each in left if each != message]
        for message in left:
            yield None, message
