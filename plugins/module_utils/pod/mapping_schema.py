# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Schemas of the mappings in pod.yml and of the rows of machines.csv. No I/O.

``spec`` declares the schemas. They validate the files, and the JSON Schema for editors is generated from them.
"""

from __future__ import annotations

import difflib
import re
import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.validation import check_type_bool, check_type_int

from .forms import TEXT, Form, list_remedy, mapping_remedy
from .mistakes import Mistakes, PodError, unknown
from .source import IDENTIFIERS, Block, Items

Option = dict[str, t.Any]
Spec = t.Mapping[str, t.Mapping[str, t.Any]]
_MAX_SHOWN = 40  # characters of an invalid value in a message
_OWN_KEYS = ("form", "range", "schema", "single")  # of an option, which ArgumentSpecValidator does not know
_TEMPLATES = ("{{", "{%")  # start of a template of Ansible
_SCALARS: dict[str, tuple[t.Callable[[t.Any], t.Any], str]] = {
    "int": (check_type_int, "a number"),
    "bool": (check_type_bool, "true or false"),
}
_DIGITS = re.compile(r"[-+]?[0-9]+")
_UNLIKE_BOOL = {"str": "quote it", "int": "write a number"}  # types with the remedy for a truth value
_MISTYPED = 0.8  # similarity from which a key is a mistyped one of the same mapping
_DASHES = "write '- ' before each item"
_COLLECTIONS = {"list": (Items, "a list"), "dict": (Block, "a mapping")}


def _shown(text: str) -> str:
    """Return the start of an invalid text in quotes, with escaped control characters."""
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…")


def _check_scalar(
    block: Block, name: str, kind: str, value: t.Any, message: str, subject: str, line: int | None = None
) -> None:
    """Reject a text that is not the number or truth value of its type."""
    convert, expected = _SCALARS.get(kind, (None, ""))
    if convert is None:
        return
    if kind == "int" and isinstance(value, float):
        expected = "a whole number"
    try:
        if isinstance(value, str) and kind == "int" and not _DIGITS.fullmatch(value):
            raise ValueError  # Python also accepts underscores and the digits of other scripts
        convert(value)
    except (TypeError, ValueError, OverflowError):
        raise block.error(message % (subject, name, expected, _shown(str(value))), name, line) from None


def is_template(value: t.Any) -> bool:
    """Return whether a value is a template without quotes: a mapping in YAML whose only key is a mapping."""
    # Such a key is read as the text of a mapping in Python.
    return isinstance(value, Block) and len(value) == 1 and next(iter(value)).startswith(("{'", '{"', "{}"))


def _type_remedy(block: Block, name: str, form: type | None, option: t.Mapping[str, t.Any]) -> str:
    """Return how to make a list or a mapping of a value, empty if that is not obvious."""
    value = block[name]
    if form is Items:
        known = option["schema"].declared if "schema" in option else ()
        if isinstance(value, Block) and value and all(key in known for key in value):
            return "write '[' before it and ']' after it" if value.line == block.lines.get(name) else _DASHES
        return list_remedy(name, option, value)
    if form is Block and not isinstance(value, Items):
        return mapping_remedy(name, option, value)
    keys = form is Block and value and all(isinstance(each, Block) for each in value)
    return "remove '- ' before its keys" if keys else ""


def _with_lines(given: t.Any, converted: t.Any, option: t.Mapping[str, t.Any]) -> t.Any:
    """Return the converted value of a key. Nested mappings and lists keep their lines."""
    if isinstance(given, Items) and option.get("elements", "dict") != "dict":
        items = Items()
        items.extend(converted)
        items.lines = given.lines
        return items
    return given if isinstance(given, (Block, Items)) else converted


def _with_value(name: str, option: t.Mapping[str, t.Any]) -> str:
    """Return a key for messages, with its valid values if it has choices."""
    lines = ["'%s: %s'" % (name, choice) for choice in option.get("choices", ())]
    return " or ".join(lines) if lines else "'%s'" % name


def _listed(names: t.Sequence[str], word: str, quote: str = "'") -> str:
    """Return names as part of a sentence."""
    quoted = ["%s%s%s" % (quote, name, quote) for name in names]
    return (" %s " % word).join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))


class MappingSchema:
    """Schema of a mapping as an argument spec, with four more keys of an option.

    ``form`` is the form of a text, or of the values of a mapping without schema; by default it is TEXT. ``range`` has
    the lowest and the highest valid number. ``schema`` is the schema of a nested mapping, or of the mappings in a list.
    ``single`` allows a single text in the place of a list of texts; the result is a list.
    """

    def __init__(
        self,
        label: str,
        spec: Spec,
        about: t.Mapping[str, str] | None = None,
        elsewhere: t.Mapping[str, str] | None = None,
        **rules: t.Any,
    ) -> None:
        """``label`` names the mapping in messages. ``about`` describes each key, for users.

        ``elsewhere`` has the remedy for keys whose content users write here, but which belongs to another place.
        ``rules`` are ``mutually_exclusive`` and ``required_one_of``, lists of groups of keys.
        """
        self.label = label
        self.declared = spec
        self.about = about or {}
        self.rules = rules
        self.elsewhere = elsewhere or {}
        self._forms: dict[str, Form] = {
            name: option.get("form", TEXT)
            for name, option in spec.items()
            if option.get("elements", option.get("type", "str")) == "str"
        }
        self.spec: Spec = {
            name: {key: value for key, value in option.items() if key not in _OWN_KEYS} for name, option in spec.items()
        }
        optional = {name: {**option, "required": False} for name, option in self.spec.items()}
        self._validator = ArgumentSpecValidator(optional)

    def check(self, block: Block, subject: str | None = None) -> Block:
        """Return the mapping with converted values and defaults. Raises PodError with all mistakes."""
        mistakes = Mistakes()
        checked = self.read(block, mistakes, subject)
        mistakes.check()
        return checked

    def read(self, block: Block, mistakes: Mistakes, subject: str | None = None) -> Block:
        """Return the mapping with converted values and defaults. Record its mistakes, each with its line.

        ``subject`` names the mapping in messages, by default its label with its name. Keys with mistakes are in
        ``invalid`` of the result, without a value.
        """
        subject = subject or self._subject(block)
        complete = self._check_keys(block, subject, mistakes)
        values: dict[str, t.Any] = {}
        for name in block:
            if name in self.spec:
                valid = False
                with mistakes.collect():
                    if name not in block.unusable:
                        self._check_templates(block, name, subject)
                        self._check_type(block, name, subject)
                        self._check_items(block, name, subject)
                        self._check_choices(block, name, subject)
                        valid = True
                if not valid:
                    complete = False
                else:
                    values[name] = self._as_list(name, block[name])
        result = self._validator.validate(dict(values))
        if result.error_messages:
            for key, message in list(self._invalid(values)):
                mistakes.add(block.error("%s: %s" % (subject, message), key))
                del values[key]
                complete = False
            result = self._validator.validate(dict(values))
        excluded = self._check_groups(block, complete, subject, mistakes)
        converted = result.validated_parameters
        for name in list(values):
            if not self._check_value(block, name, converted[name], subject, mistakes):
                del values[name]
        checked = Block(block.file, block.line)
        checked.lines = block.lines
        for name, option in self.spec.items():
            if (name not in excluded and name in values) or (name not in block and not option.get("required")):
                checked[name] = _with_lines(block.get(name), converted[name], option)
                continue
            checked.invalid.add(name)
            checked[name] = None
        return checked

    def _check_keys(self, block: Block, subject: str, mistakes: Mistakes) -> bool:
        """Record unknown and missing keys. Return whether there are none."""
        unknown_keys = [name for name in block if name not in self.spec]
        missing = sorted(name for name, option in self.spec.items() if option.get("required") and name not in block)
        messages = {name: self._unknown_key(name) for name in unknown_keys}
        if unknown_keys:
            messages[unknown_keys[-1]] += self._missing(block, "".join(messages.values()))
        for name, message in messages.items():
            mistakes.add(block.error("%s: %s" % (subject, message), name))
        if missing and not unknown_keys:
            shown = _listed([_with_value(name, self.spec[name]) for name in missing], "and", quote="")
            verb, them = ("is", "it") if len(missing) == 1 else ("are", "them")
            mistakes.add(block.error("%s: %s %s missing: add %s" % (subject, shown, verb, them)))
        return not unknown_keys and not missing

    def _unknown_key(self, name: str) -> str:
        """Return the message for an unknown key."""
        key, colon, _value = name.partition(":")
        if colon and key in self.spec and name.isascii():
            return "unknown key '%s': write a space after the colon of '%s'" % (name, key)
        if name in self.elsewhere:
            return "unknown key '%s': %s" % (name, self.elsewhere[name])
        owners = [
            key for key, option in self.declared.items() if "schema" in option and name in option["schema"].declared
        ]
        if owners and not difflib.get_close_matches(name, self.spec, 1, _MISTYPED):
            return "unknown key '%s': it is a key of %s: move it there" % (name, _listed(owners, "or"))
        return unknown("key", name, self.spec)

    def _check_groups(self, block: Block, complete: bool, subject: str, mistakes: Mistakes) -> set[str]:
        """Record keys that exclude each other, and groups without a key. Return the former: one of them is wrong."""
        excluded: set[str] = set()
        for group in self.rules.get("mutually_exclusive", ()):
            given = [name for name in group if block.get(name) is not None or name in block.unusable]
            if len(given) > 1:
                message = "%s: %s exclude each other: remove one of them"
                mistakes.add(block.error(message % (subject, _listed(given, "and")), given[-1]))
                excluded.update(group)
        for group in self.rules.get("required_one_of", ()):
            # A missing key may follow from a key with a mistake.
            if complete and not any(name in block for name in group):
                message = "%s: %s is missing: add one of them"
                mistakes.add(block.error(message % (subject, _listed(group, "or"))))
        return excluded

    def _check_templates(self, block: Block, name: str, subject: str) -> None:
        """Reject all templates in a value or list. Those in keys of the inventory plugin are valid."""
        if self.spec[name].get("type") == "raw":
            return
        value = block[name]
        rows = zip(value, value.lines, strict=True) if isinstance(value, Items) else [(value, None)]
        mistakes = Mistakes()
        for text, line in rows:
            if isinstance(text, str) and any(start in text for start in _TEMPLATES):
                mistakes.add(self._template(block, name, subject, line, " " + _shown(text)))
        mistakes.check()

    def _template(self, block: Block, name: str, subject: str, line: int | None = None, shown: str = "") -> PodError:
        """Return the error for a template. Without quotes, it is a mapping in YAML, and its text is unknown."""
        what = self.label if name in IDENTIFIERS else subject
        message = "%s: invalid %s%s: templates are not rendered here: write the value"
        return block.error(message % (what, name, shown), name, line)

    def _as_list(self, name: str, value: t.Any) -> t.Any:
        """Return a value, as a list when a single one stands for a list. The validator would split it at commas."""
        single = self.declared[name].get("single") and not isinstance(value, Items)
        return [value] if single else value

    def _check_value(self, block: Block, name: str, value: t.Any, subject: str, mistakes: Mistakes) -> bool:
        """Record texts of another form, also in lists, and numbers out of range. Return whether there are none.

        Omitted values and optional empty ones are valid, but a list contains no empty ones.
        """
        limits, form = self.declared[name].get("range"), self._forms.get(name)
        before = len(mistakes)
        if limits and value is not None and not limits[0] <= value <= limits[1]:
            message = "%s: invalid %s %d: use %d to %d"
            mistakes.add(block.error(message % (subject, name, value, *limits), name))
        given = block[name]
        may_be_empty = not self.spec[name].get("required") and not isinstance(given, Items)
        lines = given.lines if isinstance(given, Items) else [block.lines.get(name)]
        for text, line in zip(value if isinstance(value, list) else [value], lines, strict=False):
            if form is None or text is None or (text == "" and may_be_empty) or form.accepts(str(text)):
                continue
            what = self.label if name in IDENTIFIERS else subject
            message = "%s: invalid %s %s: %s" % (what, name, _shown(text), form.remedy(str(text)))
            mistakes.add(block.error(message, name, line))
        return len(mistakes) == before

    def _check_type(self, block: Block, name: str, subject: str) -> None:
        """Reject values of another type, also those that the validator would convert."""
        kind = self.spec[name].get("type", "str")
        form, expected = _COLLECTIONS.get(kind, (None, "a single value"))
        value = block[name]
        if value is None:
            message = "%s: '%s' has no value: set one" % (subject, name)
            raise block.error(message + ("" if self.spec[name].get("required") else ", or remove the key"), name)
        if self.declared[name].get("single"):
            if isinstance(value, Block):
                message = "%s: '%s' must be a single value or a list: %s"
                raise block.error(message % (subject, name, list_remedy(name, self.declared[name], value)), name)
            if not isinstance(value, Items):
                kind, form = "str", None
        if kind == "raw":
            return
        if isinstance(value, bool) and kind in _UNLIKE_BOOL:
            raise block.error("%s: '%s' is a truth value in YAML: %s" % (subject, name, _UNLIKE_BOOL[kind]), name)
        if is_template(value):
            raise self._template(block, name, subject)
        if not isinstance(value, form) if form else isinstance(value, (Block, Items)):
            remedy = self.elsewhere.get(name) or _type_remedy(block, name, form, self.declared[name])
            line = value.line if isinstance(value, Block) and form else None
            message = "%s: '%s' must be %s%s" % (subject, name, expected, ": " + remedy if remedy else "")
            error = block.error(message, name, line)
            raise error.unless(isinstance(value, (Block, Items)) and value.tagged)
        _check_scalar(block, name, kind, value, "%s: '%s' must be %s, not %s", subject)

    def _check_items(self, block: Block, name: str, subject: str) -> None:
        """Reject all items of a list that have another type."""
        value, elements = block[name], self.spec[name].get("elements", "raw")
        if elements == "raw" or not isinstance(value, Items):
            return
        mistakes = Mistakes()
        for item, line in zip(value, value.lines, strict=True):
            with mistakes.collect():
                if elements == "dict":
                    if not isinstance(item, Block):
                        first = self.declared[name]["schema"].first_key
                        remedy = ": write {%s: %s}" % (first, item) if isinstance(item, str) else ""
                        message = "%s: '%s' must be a list of mappings%s" % (subject, name, remedy)
                        raise block.error(message, name, line)
                elif is_template(item):
                    raise self._template(block, name, subject, line)
                elif item is None or isinstance(item, (Block, Items)):
                    raise block.error("%s: '%s' must be a list of single values" % (subject, name), name, line)
                elif isinstance(item, bool):
                    message = "%s: '%s' contains a truth value of YAML: %s"
                    raise block.error(message % (subject, name, _UNLIKE_BOOL[elements]), name, line)
                _check_scalar(block, name, elements, item, "%s: each value of '%s' must be %s, not %s", subject, line)
        mistakes.check()

    @property
    def first_key(self) -> str:
        """Key that identifies the mappings in a list, or their first key."""
        return next((key for key in IDENTIFIERS if key in self.declared), next(iter(self.declared)))

    def _check_choices(self, block: Block, name: str, subject: str) -> None:
        """Reject all values of a key that are none of its choices."""
        value, choices = block[name], self.spec[name].get("choices")
        if not choices:
            return
        mistakes = Mistakes()
        lines = value.lines if isinstance(value, Items) else [None]
        for text, line in zip(map(str, value if isinstance(value, Items) else [value]), lines, strict=True):
            if text not in choices:
                message = "%s: %s" % (subject, unknown("value of %s" % name, text, choices))
                mistakes.add(block.error(message, name, line))
        mistakes.check()

    def child(self, block: Block, key: str, mistakes: Mistakes, subject: str | None = None) -> Block:
        """Return the mapping of a key as ``read`` does. An omitted one has the defaults."""
        schema: MappingSchema = self.declared[key]["schema"]
        given = block.get(key)
        return schema.read(Block(block.file, block.line) if given is None else given, mistakes, subject)

    def children(self, block: Block, key: str, mistakes: Mistakes) -> list[Block]:
        """Return the mappings of a list as ``read`` does."""
        schema: MappingSchema = self.declared[key]["schema"]
        return [schema.read(item, mistakes) for item in block.get(key) or ()]

    def _missing(self, block: Block, message: str) -> str:
        """Return the missing required keys that the message does not suggest already."""
        required = [name for name, option in self.spec.items() if option.get("required") and name not in block]
        names = [name for name in required if "'%s'" % name not in message]
        return " (missing: %s)" % ", ".join(names) if names else ""

    def _subject(self, block: Block) -> str:
        name = next((block[key] for key in IDENTIFIERS if key in block), None)
        named = isinstance(name, (str, int)) and not isinstance(name, bool)
        return "%s '%s'" % (self.label, name) if named else self.label

    def _invalid(self, values: dict[str, t.Any]) -> t.Iterator[tuple[str, str]]:
        """Yield the key of each invalid value with its message."""
        for name, value in values.items():
            alone = ArgumentSpecValidator({name: dict(self.spec[name], required=False)})
            found = alone.validate({name: value}).error_messages
            if found:
                yield name, found[0]


TEXTS: Option = {"type": "list", "elements": "str"}


def mapping(schema: MappingSchema) -> Option:
    """Return an option whose value is a mapping."""
    return {"type": "dict", "schema": schema}


def mapping_list(schema: MappingSchema) -> Option:
    """Return an option whose value is a list of mappings."""
    return {"type": "list", "elements": "dict", "schema": schema}


def number(lowest: int, highest: int, **option: t.Any) -> Option:
    """Return an option whose value is a number in a range."""
    return {"type": "int", "range": (lowest, highest), **option}
