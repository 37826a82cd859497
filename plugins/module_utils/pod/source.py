# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading pod.yml and machines.csv so that every value knows its line, and refusing them with it."""

from __future__ import annotations

import csv
import difflib
import typing as t
from pathlib import Path

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

try:
    import yaml

    HAS_YAML = True
    # libyaml's parser where PyYAML was built with it: ten times the speed.
    _PARSER: t.Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
except ImportError:
    HAS_YAML = False

Spec = t.Mapping[str, t.Mapping[str, t.Any]]
_SHOWN = 20  # names that a sentence lists at most


class PodError(Exception):
    """What is wrong with a POD's description: ``file``, ``line`` (from 1; None: the file as a whole), ``sentence``."""

    def __init__(self, file: str, line: int | None, sentence: str) -> None:
        """See the class."""
        self.place = file if line is None else "%s, line %d" % (file, line)
        super().__init__("%s: %s" % (self.place, sentence))
        self.file = file
        self.line = line
        self.sentence = sentence


class Block(dict[str, t.Any]):
    """A mapping that knows where it stands: its file, its line, and the line of every key."""

    def __init__(self, file: str, line: int) -> None:
        """An empty mapping at a place."""
        super().__init__()
        self.file = file
        self.line = line
        self.lines: dict[str, int] = {}

    def put(self, key: str, value: t.Any, line: int) -> None:
        """Set a key that stands in a line."""
        self[key] = value
        self.lines[key] = line

    def error(self, sentence: str, key: str | None = None, line: int | None = None) -> PodError:
        """The refusal of a line, of one key, or of the mapping as a whole."""
        return PodError(self.file, line or self.lines.get(key or "", self.line), sentence)


class Items(list[t.Any]):
    """A list that knows the line of every item."""

    def __init__(self) -> None:
        """An empty list."""
        super().__init__()
        self.lines: list[int] = []


def read_yaml(path: str) -> Block:
    """The mapping in a YAML file, with lines. Raises PodError."""
    if not HAS_YAML:
        raise PodError(path, None, "the Python library PyYAML is needed to read it: install PyYAML")
    try:
        with Path(path).open(encoding="utf-8-sig") as stream:
            loader = _PARSER(stream.read())
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None
    except yaml.reader.ReaderError as error:
        raise PodError(path, None, "is not a text file: %s" % error.reason) from None
    try:
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise PodError(path, 1, "a POD is described by a mapping that starts with 'plugin: openipu.pod.pod'")
        return _Tree(path, loader).block(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise PodError(path, mark.line + 1 if mark else None, "is not YAML: %s" % error.problem) from None
    except yaml.YAMLError as error:
        raise PodError(path, None, "is not YAML: %s" % error) from None
    except RecursionError:
        raise PodError(path, None, "is nested too deeply") from None
    finally:
        loader.dispose()


class _Tree:
    """Values of YAML nodes."""

    def __init__(self, path: str, loader: t.Any) -> None:
        self.path = path
        self.loader = loader
        self.blocks: dict[int, Block] = {}  # an aliased mapping is read once: merging changes its node

    def block(self, node: t.Any) -> Block:
        if id(node) not in self.blocks:
            self.blocks[id(node)] = self._read(node)
        return self.blocks[id(node)]

    def _read(self, node: t.Any) -> Block:
        # Merged keys ('<<') stand first and are given way to by the mapping's own.
        own = sum(1 for key, value in node.value if key.tag != "tag:yaml.org,2002:merge")
        self.loader.flatten_mapping(node)
        merged = len(node.value) - own
        result = Block(self.path, node.start_mark.line + 1)
        seen: set[str] = set()
        for position, (key_node, value_node) in enumerate(node.value):
            line = key_node.start_mark.line + 1
            key = str(self.value(key_node))
            if position >= merged:
                if key in seen:
                    raise PodError(self.path, line, "the key '%s' stands twice in one mapping: remove one" % key)
                seen.add(key)
            result.put(key, self.value(value_node), line)
        return result

    def value(self, node: t.Any) -> t.Any:
        if isinstance(node, yaml.MappingNode):
            return self.block(node)
        if isinstance(node, yaml.SequenceNode):
            result = Items()
            for item in node.value:
                result.append(self.value(item))
                result.lines.append(item.start_mark.line + 1)
            return result
        # A MAC of digits only is a number in base 60 to YAML 1.1.
        if node.tag == "tag:yaml.org,2002:int" and ":" in node.value:
            return node.value
        try:
            return self.loader.construct_object(node)
        except ValueError as error:
            raise PodError(self.path, node.start_mark.line + 1, "cannot read '%s': %s" % (node.value, error)) from None


def read_csv(path: str, columns: t.Collection[str], required: t.Iterable[str]) -> list[Block]:
    """The rows of a CSV file with a header line; empty cells and empty lines are left out. Raises PodError."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            return list(_rows(path, csv.reader(stream, strict=True), columns, required))
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None


def _rows(path: str, reader: t.Any, columns: t.Collection[str], required: t.Iterable[str]) -> t.Iterator[Block]:
    header: list[str] | None = None
    try:
        for cells in reader:
            line = reader.line_num
            cells = [cell.strip() for cell in cells]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if header is None:
                header = _header(path, line, cells, columns, required)
                continue
            if len(cells) != len(header):
                wrong = "the line has %d values and the header %d: separate them with commas, leave unknown ones empty"
                raise PodError(path, line, wrong % (len(cells), len(header)))
            row = Block(path, line)
            for column, cell in zip(header, cells, strict=True):
                if cell:
                    row.put(column, cell, line)
            yield row
    except csv.Error as error:
        raise PodError(path, reader.line_num, "is not CSV: %s" % error) from None
    if header is None:
        raise PodError(path, None, "is empty: start it with a header line: %s" % ",".join(required))


def _header(path: str, line: int, cells: list[str], columns: t.Collection[str], required: t.Iterable[str]) -> list[str]:
    names = [cell.lower() for cell in cells]
    for name in names:
        if name not in columns:
            raise PodError(path, line, unknown("column", name, columns))
        if names.count(name) > 1:
            raise PodError(path, line, "the column '%s' stands twice: remove one" % name)
    missing = [name for name in required if name not in names]
    if missing:
        raise PodError(path, line, "the header lacks the column '%s': add it" % missing[0])
    return names


def unreadable(path: str, error: Exception) -> PodError:
    """The refusal of a file that cannot be read at all."""
    if isinstance(error, UnicodeDecodeError):
        return PodError(path, None, "is not UTF-8 text: save it in that encoding")
    if isinstance(error, FileNotFoundError):
        named = " ('machines' in pod.yml names it)" if path.endswith(".csv") else ""
        return PodError(path, None, "there is no such file: write it, or name another%s" % named)
    return PodError(path, None, "cannot be read: %s" % (getattr(error, "strerror", None) or error))


def beside(path: str, name: str) -> str:
    """The path of a file that another one names: relative to the folder of that one."""
    return str(Path(path).parent / name)


def unknown(what: str, name: str, known: t.Iterable[str]) -> str:
    """The sentence for a name that means nothing here, with the name that may have been meant."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return "unknown %s '%s': did you mean '%s'?" % (what, name, near[0])
    more = " and %d more" % (len(names) - _SHOWN) if len(names) > _SHOWN else ""
    listed = "known are %s%s" % (", ".join(names[:_SHOWN]), more) if names else "there are none"
    return "unknown %s '%s': %s" % (what, name, listed)


_FORMS = {"list": (Items, "a list"), "dict": (Block, "a mapping")}


class Shape:
    """What a mapping may hold, as an argument spec; nested mappings have shapes of their own."""

    def __init__(self, what: str, spec: Spec, **rules: t.Any) -> None:
        """``rules`` are those of ArgumentSpecValidator (mutually_exclusive and so on)."""
        self.what = what
        self.spec = spec
        self._validator = ArgumentSpecValidator(spec, **rules)

    def check(self, block: Block) -> Block:
        """The mapping with its values in their types and defaults filled in. Raises PodError at the line at fault."""
        for name in block:
            if name not in self.spec:
                told = unknown("key", name, self.spec)
                raise block.error("%s: %s%s" % (self._named(block), told, self._missing(block, told)), name)
            self._check_form(block, name)
        result = self._validator.validate(dict(block))
        if result.error_messages:
            raise block.error("%s: %s" % (self._named(block), result.error_messages[0]), self._at_fault(block))
        checked = Block(block.file, block.line)
        checked.lines = block.lines
        # Nested mappings and lists keep their lines.
        for name, value in result.validated_parameters.items():
            checked[name] = block[name] if isinstance(block.get(name), (Block, Items)) else value
        return checked

    def _check_form(self, block: Block, name: str) -> None:
        """Refuse what the validator would turn into a value of another form, or into text."""
        kind = self.spec[name].get("type", "str")
        form, said = _FORMS.get(kind, (None, "one value"))
        value = block[name]
        if value is None or kind == "raw":
            return
        if not isinstance(value, form) if form else isinstance(value, (Block, Items)):
            raise block.error("%s: '%s' is %s" % (self._named(block), name, said), name)
        if self.spec[name].get("elements") == "dict":
            for item, line in zip(value, value.lines, strict=True):
                if not isinstance(item, Block):
                    raise block.error("%s: '%s' is a list of mappings" % (self._named(block), name), name, line)

    def children(self, block: Block, key: str) -> list[Block]:
        """The mappings of a list in a mapping that was checked. Raises PodError."""
        return [self.check(item) for item in block.get(key) or ()]

    def _missing(self, block: Block, told: str) -> str:
        """What a mapping with a wrong key lacks too: what was not told already as the right one."""
        required = [name for name, option in self.spec.items() if option.get("required") and name not in block]
        names = [name for name in required if "'%s'" % name not in told]
        return " (missing: %s)" % ", ".join(names) if names else ""

    def _named(self, block: Block) -> str:
        name = block.get("id", block.get("name"))
        return self.what if name is None else "%s '%s'" % (self.what, name)

    def _at_fault(self, block: Block) -> str | None:
        """The key whose value alone is refused; None when it is the mapping as a whole."""
        for name, value in block.items():
            alone = ArgumentSpecValidator({name: dict(self.spec[name], required=False)})
            if alone.validate({name: value}).error_messages:
                return name
        return None
